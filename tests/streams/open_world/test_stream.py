"""Open worlds: which classes and samples are where, how many, in what order, and what is refused."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.data import Dataset, load
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import ClassSizeLaw, OpenWorld, open_world
from driftline.tasks import Classification, Regression
from driftline.testing import check_stream
from driftline.types import Samples


def world(sizes, texts=False):
    """A dataset whose classes have these sizes; the input of a row is its number."""
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    n = len(y)
    x = [f"row {k}" for k in range(n)] if texts else np.arange(n, dtype=float)[:, None]
    task = Classification(tuple(f"class {k}" for k in range(len(sizes))))
    return Dataset("made", Samples(x, y, id=np.arange(n) + 1000, time=np.zeros(n, int)), task)


EVEN = world([60] * 40)


def test_counts_follow_the_law_where_there_are_samples():
    stream = open_world(world([1000] * 40), 20, 5, "500/(4+r)", upstream_each=100)
    expected = [500 // (4 + r) for r in range(1, 21)]
    assert np.sort(stream.counts)[::-1].tolist() == expected + [0] * 20
    assert len(stream.rows) == stream.counts.sum() == sum(expected)
    few = open_world(world([50] * 40), 20, 5, "500/(4+r)", upstream_each=20)
    counts = np.sort(few.counts)[::-1][:20]
    assert (counts <= expected).all()
    assert few.counts[list(few.novel_classes)].max() == 50
    assert few.counts[list(few.pretrain_classes)].max() <= 30  # 20 of them are upstream


def test_steps_hand_out_the_rows_in_order():
    stream = open_world(EVEN, 20, 5, "300/(4+r)", block=64)
    assert isinstance(stream, OpenWorld)
    check_stream(stream)
    steps = [stream[k] for k in range(len(stream))]
    assert [len(step.samples) for step in steps[:-1]] == [64] * (len(steps) - 1)
    assert 1 <= len(steps[-1].samples) <= 64
    assert all(step.one_by_one for step in steps)
    together = Samples.concat([step.samples for step in steps])
    np.testing.assert_array_equal(together.x[:, 0], stream.rows)
    np.testing.assert_array_equal(together.id, stream.rows + 1000)
    np.testing.assert_array_equal(together.time, np.arange(len(stream.rows)))
    np.testing.assert_array_equal(together.group, np.isin(together.y, stream.novel_classes))
    assert (steps[1].time, stream[-1].index) == ("65-128", len(stream) - 1)
    np.testing.assert_array_equal(np.bincount(together.y, minlength=40), stream.counts)


def test_texts_are_samples_too():
    stream = open_world(world([30] * 12, texts=True), 6, 2, "20/r^0.5")
    assert stream[0].samples.x == [f"row {row}" for row in stream.rows[:100]]
    assert isinstance(stream.upstream.x, list)


def test_the_paper_in_proportion():
    """250 of 1000 classes were among the 1000 upstream ones; there are five sequences."""
    data = world([40] * 140)
    streams = [open_world(data, 20, 5, "100/(5+r)", upstream_classes=20, number=k, disjoint=True) for k in range(1, 6)]
    assert [stream.role for stream in streams] == ["validation"] * 2 + ["test"] * 3
    for stream in streams:
        assert (len(stream.upstream_classes), len(stream.pretrain_classes), len(stream.novel_classes)) == (20, 5, 15)
        assert set(stream.pretrain_classes) <= set(stream.upstream_classes)
        assert set(np.unique(stream.upstream.y)) == set(stream.upstream_classes)
    for one, other in combinations(streams, 2):
        assert not set(one.novel_classes) & set(other.novel_classes)
        np.testing.assert_array_equal(one.upstream_rows, other.upstream_rows)
    assert not set(streams[0].pretrain_classes) & set(streams[3].pretrain_classes)  # 20 are enough for four sequences
    assert streams[0].pretrain_classes == streams[4].pretrain_classes
    assert streams[0].rows.tolist() != streams[4].rows.tolist()


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 30), min_size=12, max_size=30),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from(["uniform", "drifting", "bursts 3", "recurring 2"]),
    st.integers(0, 3),
)
def test_nothing_is_in_two_places(sizes, novel, pretrain, more, disjoint, order, split):
    data = world(sizes)
    classes = novel + pretrain
    how = {"upstream_classes": max(pretrain + more, 1), "disjoint": disjoint, "order": order, "split": Seed(split)}
    try:
        streams = [open_world(data, classes, pretrain, "40/(1+r)", number=k, **how) for k in range(1, 6)]
    except UserError:
        return
    for stream in streams:
        assert len(np.unique(stream.rows)) == len(stream.rows)
        assert not set(stream.rows) & set(stream.upstream_rows)
        assert not set(stream.novel_classes) & set(stream.upstream_classes)
        assert set(np.unique(data.samples.y[stream.rows])) == set(stream.novel_classes) | set(stream.pretrain_classes)
        assert (np.sort(stream.counts)[::-1][:classes] <= ClassSizeLaw(40, 1).counts(classes)).all()
        assert stream.counts.sum() == len(stream.rows)
        assert stream.upstream_rows.tolist() == streams[0].upstream_rows.tolist()
    novels = [set(stream.novel_classes) for stream in streams]
    assert not (novels[0] | novels[1]) & (novels[2] | novels[3] | novels[4])
    if disjoint:
        assert len(novels[2] | novels[3] | novels[4]) == 3 * novel


def test_what_a_seed_and_a_split_decide():
    def made(split, seed, **how):
        return open_world(EVEN, 20, 5, "100/(2+r)", split=Seed(split), seed=Seed(seed), number=3, **how)

    one, same, shuffled, elsewhere = made(0, 0), made(0, 0), made(0, 1), made(1, 0)
    assert one.rows.tolist() == same.rows.tolist() != shuffled.rows.tolist()
    assert one.novel_classes == shuffled.novel_classes != elsewhere.novel_classes
    assert one.upstream_rows.tolist() == shuffled.upstream_rows.tolist() != elsewhere.upstream_rows.tolist()
    assert one.counts.tolist() != shuffled.counts.tolist()  # ranks are drawn anew
    for order in ("drifting", "bursts", "recurring"):  # an order moves samples, and draws no others
        assert sorted(made(0, 0, order=order).rows.tolist()) == sorted(one.rows.tolist())


def test_ranks_are_dealt_at_random():
    """Over many seeds, pretrain and novel classes are as large as each other."""
    data, mean = world([200] * 40), ClassSizeLaw(200, 1).counts(20).mean()
    streams = [open_world(data, 20, 10, "200/(1+r)", upstream_each=50, seed=Seed(k)) for k in range(60)]
    old = np.mean([stream.counts[list(stream.pretrain_classes)].mean() for stream in streams])
    assert old == pytest.approx(mean, rel=0.1)
    firsts = {int(stream.counts.argmax()) for stream in streams}
    assert len(firsts) > 15


def test_how_much_is_upstream():
    data = world([60] * 10 + [7] * 10)
    half = open_world(data, 8, 4, "20/r^0.5", upstream_classes=10)
    sizes = np.bincount(half.upstream.y, minlength=20)
    assert {int(sizes[k]) for k in half.upstream_classes} <= {30, 3}
    ten = open_world(data, 8, 4, "20/r^0.5", upstream_classes=10, upstream_each=10)
    assert max(ten.upstream_classes) < 10  # a class of 7 cannot give 10
    assert np.bincount(ten.upstream.y).tolist() == [10] * 10
    with pytest.raises(UserError, match=r"10 classes that can give 10 of their samples each .* upstream_classes=11"):
        open_world(data, 8, 4, "20/r^0.5", upstream_classes=11, upstream_each=10)
    with pytest.raises(UserError, match=r"0 classes that can give 0\.01 of their samples"):
        open_world(data, 8, 4, "20/r^0.5", upstream_share=0.01)


def test_without_sequences_to_choose_by_tests_have_all_classes():
    data = world([30] * 10)
    with pytest.raises(UserError, match=r"8 classes .* 5 novel .* need 10 of them: 5 for .* choose by and 5 for"):
        open_world(data, 7, 2, "20/r")
    gap = replace(data, samples=data.samples[data.samples.y != 4])  # a class without samples is none
    assert all(4 not in open_world(gap, 5, 2, "20/r", split=Seed(k)).novel_classes for k in range(9))
    stream = open_world(data, 10, 2, "20/r", sequences=1, validation=0)
    assert stream.role == "test"
    assert len(stream.novel_classes) == 8


def test_more_sequences_than_classes_share_some_unless_told_otherwise():
    how = {"sequences": 5, "validation": 2}
    streams = [open_world(EVEN, 20, 5, "60/r^0.2", number=k, **how) for k in (3, 4)]
    assert set(streams[0].novel_classes) & set(streams[1].novel_classes)
    with pytest.raises(UserError, match=r"35 classes .* need 60 of them: 15 .* and 45 .* share none.* disjoint=False"):
        open_world(EVEN, 20, 5, "60/r^0.2", number=3, disjoint=True, **how)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": 1}, "classes=1 and pretrain=5"),
        ({"pretrain": 21}, "at most all as pretrain"),
        ({"upstream_classes": 4}, "upstream_classes=4: .* the 5 pretrain classes are among"),
        ({"pretrain": 0}, "the upstream model needs a class"),
        ({"upstream_share": 1.0}, "a share between 0 and 1"),
        ({"upstream_each": 0}, "upstream_each=0"),
        ({"block": 0}, "block=0"),
        ({"number": 6}, "no sequence 6: they are numbered from 1 to 5"),
        ({"number": 0}, "no sequence 0"),
        ({"validation": 6}, "validation=6"),
        ({"class_size_law": "zipf"}, "'zipf' is not a law"),
        ({"class_size_law": "10/r"}, "only the first 10 of 20 classes"),
        ({"order": "sorted"}, "no order of an open world 'sorted'"),
    ],
)
def test_what_makes_no_sense_is_said(change, message):
    with pytest.raises(UserError, match=message):
        open_world(EVEN, **{"classes": 20, "pretrain": 5, "class_size_law": "100/(2+r)", **change})


def test_data_without_classes_are_refused():
    with pytest.raises(UserError, match="'made' has no classes"):
        open_world(replace(EVEN, task=Regression()), 20, 5, "100/(2+r)")


def test_an_open_world_of_digits():
    stream = open_world(load("digit-symmetries"), 40, 10, "1200/(8+r)", upstream_classes=20, number=3)
    assert len(stream.rows) == stream.counts.sum() > 1000
    novel = np.isin(stream.dataset.samples.y[stream.rows], stream.novel_classes)
    assert 0.6 < novel.mean() < 0.9


def test_a_large_world_is_laid_out_by_rows_alone():
    """A step takes its own rows and no more: here a world whose inputs cannot be copied as a whole."""

    class Guarded(np.ndarray):
        def __getitem__(self, index):
            assert np.size(index) <= 100
            return super().__getitem__(index)

    data = world([300] * 50)
    guarded = np.asarray(data.samples.x).view(Guarded)
    stream = open_world(replace(data, samples=replace(data.samples, x=guarded)), 25, 5, "3000/(10+r)")
    assert len(stream[len(stream) // 2].samples) == 100
