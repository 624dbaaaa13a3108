"""Class sizes by rank: the numbers of the published files, laws in words, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from driftline.data import data_folders, locate
from driftline.errors import UserError
from driftline.streams import ClassSizeLaw
from driftline.streams.open_world.arrival_order import arrange

PUBLISHED = ClassSizeLaw(25_000, 25)


@pytest.fixture(scope="module")
def sequences():
    """The labels of three published sequences, and which of their classes are novel."""
    try:
        path = locate(data_folders(), ["ned/label_sequences.npz"], "ned", "")
    except UserError:
        pytest.skip("ned/label_sequences.npz is not in $DRIFTLINE_DATA or the cache folder")
    with np.load(path, allow_pickle=False) as content:
        return {name: (content[f"{name}_labels"], content[f"{name}_novel"]) for name in ("S3", "S4", "S5")}


def test_the_published_law():
    counts = PUBLISHED.counts(1000)
    assert counts[[0, 1, 2, 3, 4, 5, 6, 464, 465, 999]].tolist() == [961, 925, 892, 862, 833, 806, 781, 51, 50, 24]
    assert counts.sum() == 91_858
    assert counts.tolist() == [25_000 // (25 + r) for r in range(1, 1001)]
    assert ClassSizeLaw(961).counts(3).tolist() == [961, 480, 320]  # what Zipf's law from rank 1 on would give


def test_laws_with_an_exponent():
    assert ClassSizeLaw(1000, exponent=2).counts(4).tolist() == [1000, 250, 111, 62]
    assert ClassSizeLaw(10, exponent=0.5).counts(4).tolist() == [10, 7, 5, 5]
    assert ClassSizeLaw(3.3, 0.1).counts(1).tolist() == [3]  # computers say 2.9999999999999996
    assert ClassSizeLaw(7, exponent=0).counts(3).tolist() == [7, 7, 7]


def test_published_sequences_fit_the_law(sequences):
    lengths = {"S3": 90_133, "S4": 86_988, "S5": 89_921}
    target = PUBLISHED.counts(1000)
    assert sequences.keys() == lengths.keys()
    for name, (labels, novel) in sequences.items():
        counts = np.sort(np.bincount(labels, minlength=1000))[::-1]
        assert len(labels) == lengths[name]
        assert (counts <= target).all()
        assert (counts == target).mean() > 0.35  # elsewhere a class has fewer images
        assert novel.sum() == 750
        plain = ClassSizeLaw(961).counts(961)
        assert (counts[1:961] > plain[1:]).all()  # Zipf's law from rank 1 on is another


def test_sections_of_a_published_sequence(sequences):
    labels, novel = sequences["S5"]
    counts = np.bincount(labels, minlength=1000)
    sections = [int((kind & size).sum()) for size in (counts > 50, counts < 50) for kind in (novel, ~novel)]
    assert sections == [357, 108, 385, 140]
    assert (counts == 50).sum() == 10


def test_published_sequences_are_one_shuffle(sequences):
    """No drift; and new classes come as early in them as in our uniform order, and later in a drifting one."""
    for labels, _ in sequences.values():
        table = np.zeros((10, 1000))
        np.add.at(table, (np.arange(len(labels)) * 10 // len(labels), labels), 1)
        assert chi2_contingency(table[:, table.sum(0) > 0]).pvalue > 0.03

    def half_seen(labels, novel):
        first = np.unique(labels, return_index=True)[1]
        return np.median(first[novel])

    labels, novel = sequences["S5"]
    labels = labels.astype(int)
    assert half_seen(labels, novel) == pytest.approx(1037, abs=2)
    ours = [half_seen(labels[arrange(labels, "uniform", np.random.default_rng(k))], novel) for k in range(5)]
    assert np.mean(ours) == pytest.approx(1037, rel=0.1)
    drifting = half_seen(labels[arrange(labels, "drifting", np.random.default_rng(0))], novel)
    assert drifting > 5 * np.mean(ours)


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("25000/(25+r)", PUBLISHED),
        (" 25000 / ( r + 25 ) ", PUBLISHED),
        ("1000/r", ClassSizeLaw(1000)),
        ("1000/r^1.5", ClassSizeLaw(1000, exponent=1.5)),
        ("1000/r**2", ClassSizeLaw(1000, exponent=2)),
        ("2.5/(.5+r)^0.5", ClassSizeLaw(2.5, 0.5, 0.5)),
    ],
)
def test_laws_are_written_as_they_are_read(text, law):
    assert ClassSizeLaw.parse(text) == law
    assert ClassSizeLaw.parse(str(law)) == law


numbers = st.floats(0, 1e6).map(lambda x: float(f"{x:.6f}"))


@given(numbers.filter(bool), numbers, numbers)
def test_any_law_survives_being_written(scale, offset, exponent):
    law = ClassSizeLaw(scale, offset, exponent)
    assert ClassSizeLaw.parse(str(law)) == law


@given(st.integers(1000, 100_000), st.integers(0, 100), st.integers(1, 200))
def test_whole_numbers_are_divided_exactly(scale, offset, classes):
    expected = [scale // (offset + r) for r in range(1, classes + 1)]
    assert ClassSizeLaw(scale, offset).counts(classes).tolist() == expected


def test_what_is_no_law_is_said():
    for text in ("zipf", "1000/x", "25000/25+r", "-5/r", "1000/r^-1", ""):
        with pytest.raises(UserError, match=r"is not a law of class sizes: write '25000/\(25\+r\)'"):
            ClassSizeLaw.parse(text)
    with pytest.raises(UserError, match="only the first 10 of 12 classes have a sample: give a larger scale"):
        ClassSizeLaw(10).counts(12)
    with pytest.raises(UserError, match="the scale 0"):
        ClassSizeLaw(0)
    with pytest.raises(UserError, match="the offset -1"):
        ClassSizeLaw(1, -1)
    with pytest.raises(UserError, match="the exponent nan"):
        ClassSizeLaw(1, 0, float("nan"))
