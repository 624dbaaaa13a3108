"""Orders of arrival do what they say, in numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from driftline.errors import UserError
from driftline.streams.open_world.arrival_order import ARRIVALS, arrange

LABELS = np.repeat(np.arange(20), np.linspace(40, 400, 20).astype(int))


def arrived(order, labels=LABELS, seed=0):
    return labels[arrange(labels, order, np.random.default_rng(seed))]


def by_tenths(labels):
    """How many samples of each class come in each tenth of the stream."""
    blocks = np.arange(len(labels)) * 10 // len(labels)
    return np.stack([np.bincount(labels[blocks == k], minlength=20) for k in range(10)])


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),
    st.sampled_from([*ARRIVALS, "drifting 0.01", "bursts 1", "bursts 100", "recurring 1", "recurring 7"]),
    st.integers(0, 5),
)
def test_every_sample_arrives_once_and_the_same_each_time(labels, order, seed):
    places = [arrange(np.array(labels), order, np.random.default_rng(seed)) for _ in range(2)]
    assert places[0].tolist() == places[1].tolist()
    assert sorted(places[0].tolist()) == list(range(len(labels)))


def test_only_the_uniform_order_is_uniform():
    likely = {
        order: [chi2_contingency(by_tenths(arrived(order, seed=k))).pvalue for k in range(20)] for order in ARRIVALS
    }
    uniform = np.array(likely.pop("uniform"))
    assert ((uniform > 0.001) & (uniform < 0.999)).all()
    assert 0.2 < np.median(uniform) < 0.8
    assert all(max(values) < 1e-20 for values in likely.values())


def test_drifting_classes_have_a_centre_in_time():
    def spread(order):
        labels = arrived(order)
        time = np.arange(len(labels)) / len(labels)
        return np.mean([time[labels == k].std() for k in range(20)])

    assert spread("uniform") == pytest.approx(12**-0.5, rel=0.03)  # of a uniform distribution
    wide, narrow = spread("drifting 0.2"), spread("drifting 0.02")
    assert 0.1 < wide < 0.25
    assert narrow < 0.05
    shares = by_tenths(arrived("drifting 0.2"))[:, -1]
    assert shares.max() > 3 * max(shares.min(), 1)  # of the largest class


def runs(labels):
    """The lengths of runs of the same class."""
    ends = np.flatnonzero(np.append(np.diff(labels) != 0, True))
    return np.diff(np.append(-1, ends))


def test_bursts_are_runs():
    labels = np.repeat(np.arange(50), 40)
    assert runs(arrived("uniform", labels)).mean() < 1.1
    lengths = runs(arrived("bursts 8", labels))
    assert (lengths % 8 == 0).all()  # two runs of one class may meet
    assert 8 <= lengths.mean() < 9
    odd = runs(arrived("bursts 8", np.repeat(np.arange(50), 43)))
    assert sorted(set(odd % 8)) == [0, 3]
    assert runs(arrived("bursts 1000")).tolist() != np.bincount(LABELS).tolist()  # classes are in any order
    assert sorted(runs(arrived("bursts 1000"))) == sorted(np.bincount(LABELS))


def test_classes_leave_and_come_back():
    labels = arrived("recurring 3", np.repeat(np.arange(40), 200))
    time = np.arange(len(labels)) / len(labels)
    for k in range(40):
        gaps = np.diff(time[labels == k], prepend=time[labels == k][-1] - 1)  # around the end of the stream
        away = gaps > 0.1
        assert away.sum() == 3
        assert gaps[away].sum() == pytest.approx(0.5, abs=0.1)
    uniform = arrived("uniform", np.repeat(np.arange(40), 200))
    assert max(np.diff(np.flatnonzero(uniform == k)).max() for k in range(40)) / len(labels) < 0.1


def test_a_number_stands_behind_a_space_or_a_colon():
    for written in ("bursts 8", "bursts:8", "bursts : 8.0"):
        np.testing.assert_array_equal(arrived(written), arrived("bursts 8"))
    np.testing.assert_array_equal(arrived("bursts"), arrived("bursts 10"))
    assert arrived("bursts").tolist() != arrived("bursts 8").tolist()


def test_orders_that_are_not_there_are_said():
    with pytest.raises(UserError, match=r"no order of an open world 'burst'\. Did you mean 'bursts'"):
        arrived("burst")
    with pytest.raises(UserError, match="Known: bursts"):
        arrived("")
    with pytest.raises(UserError, match="uniform takes no number"):
        arrived("uniform 3")
    with pytest.raises(UserError, match="'many' is not a number; write 'bursts 10'"):
        arrived("bursts many")
    for order in ("bursts 0", "bursts 2.5", "recurring inf"):
        with pytest.raises(UserError, match="needs a whole number from 1"):
            arrived(order)
    with pytest.raises(UserError, match=r"drifting needs a number above 0, such as 0\.2"):
        arrived("drifting 0")
