"""Accuracy by class and section, over time, with "unseen" as an answer, and its price: the worked example and NED's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import UserError
from driftline.metrics import openworld
from driftline.metrics.openworld import (
    accuracy_with_unseen,
    best_accuracy_with_unseen,
    cross_sections,
    macs,
    rolling,
    training_passes,
)

LABELS = np.array(list("ABABCBAC"))
PREDICTED = np.array(list("AAABBAAC"))
CORRECT = LABELS == PREDICTED
UNSEEN = np.array([0, 1, 0, 0, 1, 0, 0, 0], bool)
SCORE = np.array([0.1, 0.7, 0.2, 0.6, 0.4, 0.5, 0.1, 0.3])


def means(**given: object) -> dict[str, float]:
    found = cross_sections(CORRECT, LABELS, pretrain=["A"], **given)  # type: ignore[arg-type]
    return {name: round(section.mean, 6) for name, section in found.items()}


def test_the_worked_example() -> None:
    assert openworld.overall(CORRECT) == 0.625
    assert openworld.mean_class(CORRECT, LABELS) == pytest.approx(0.611111, abs=1e-6)
    classes, accuracy, counts = openworld.per_class(CORRECT, LABELS)
    assert (classes.tolist(), counts.tolist()) == (["A", "B", "C"], [3, 3, 2])
    assert accuracy == pytest.approx([1, 1 / 3, 1 / 2])
    assert rolling(CORRECT, 4).value.tolist() == [0.75, 0.5]
    assert openworld.n_classes_seen(LABELS).tolist() == [1, 2, 2, 2, 3, 3, 3, 3]
    assert openworld.unseen_flags(LABELS, ["A"]).tolist() == UNSEEN.tolist()


def test_sections_and_where_the_boundary_belongs() -> None:
    usual = {"novel-head": 0.333333, "pretrain-head": 1.0, "novel-tail": 0.5, "pretrain-tail": np.nan}
    assert means(head=2) == pytest.approx(usual, nan_ok=True)
    assert means(head=2, at_boundary="head")["novel-head"] == pytest.approx((1 / 3 + 1 / 2) / 2, abs=1e-6)
    neither = cross_sections(CORRECT, LABELS, ["A"], head=2, at_boundary="neither")
    assert [len(section.classes) for section in neither.values()] == [1, 1, 0, 0]
    assert cross_sections(CORRECT, LABELS, ["A"], head=2)["novel-tail"].classes.tolist() == ["C"]
    assert cross_sections(CORRECT, LABELS, [], head=0)["novel-head"].classes.tolist() == ["A", "B", "C"]
    with pytest.raises(UserError, match="at_boundary"):
        means(at_boundary="top")


def test_samples_after_the_last_whole_window_are_left_out() -> None:
    found = rolling([1, 1, 0, 1, 1], window=2)
    assert (found.value.tolist(), found.end.tolist(), found.n.tolist()) == ([1.0, 0.5], [2, 4], [2, 2])
    short = rolling([1, 1, 0, 1], window=5)
    assert (short.value.tolist(), short.end.tolist(), short.n.tolist()) == ([0.75], [4], [4])
    with pytest.raises(UserError, match="window"):
        rolling([1], window=0)


def test_unseen_as_an_answer() -> None:
    output = np.isin(np.arange(8), [1, 5])
    assert accuracy_with_unseen(CORRECT, UNSEEN, output) == 0.75
    assert accuracy_with_unseen(CORRECT, UNSEEN, np.zeros(8, bool)) == 0.625
    assert best_accuracy_with_unseen(CORRECT, UNSEEN, SCORE) == (0.75, 0.7, 1)
    assert best_accuracy_with_unseen([1, 1], [0, 0], [0.3, 0.2]) == (1.0, np.inf, 0)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 4)), min_size=1, max_size=25))
def test_the_best_threshold_is_the_best_of_all(rows: list[tuple[bool, bool, int]]) -> None:
    right, new, score = (np.array(column) for column in zip(*rows, strict=True))
    found = best_accuracy_with_unseen(right, new, score)
    every = [accuracy_with_unseen(right, new, score >= at) for at in [np.inf, *score.tolist()]]
    assert found.value == pytest.approx(max(every))
    assert found.value == pytest.approx(accuracy_with_unseen(right, new, score >= found.threshold))
    assert found.flagged == (score >= found.threshold).sum()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=30), st.integers(0, 5))
def test_sections_are_a_partition(rows: list[tuple[bool, int]], head: int) -> None:
    right, labels = (np.array(column) for column in zip(*rows, strict=True))
    found = cross_sections(right, labels, pretrain=[0, 1], head=head)
    weighted = sum(section.accuracy.sum() for section in found.values()) / sum(len(s.classes) for s in found.values())
    assert weighted == pytest.approx(openworld.mean_class(right, labels))
    by_hand = [right[labels == label].mean() for label in sorted(set(labels.tolist()))]
    assert openworld.mean_class(right, labels) == pytest.approx(np.mean(by_hand))
    windows = rolling(right, 4)
    whole = right[: windows.end[-1]]
    assert len(right) - len(whole) < 4
    assert windows.value @ windows.n / len(whole) == pytest.approx(openworld.overall(whole))


def test_macs_of_the_worked_example_in_every_convention() -> None:
    passes = training_passes(8, train_every=4, epochs=2)
    assert passes == 24
    assert macs(8, 10, 1, passes=passes) == 880
    assert macs(8, 10, 1, passes=passes, backward=1) == 616
    assert macs(8, 10, 1, trained_part="head", passes=passes) == 400
    assert macs(8, 10, 1, trained_part="head", passes=passes, cached=True) == 160
    assert macs(8, 10, 1, trained_part="head", passes=passes, backward=0) == 352
    assert macs(8, 10, 1) == 88
    with pytest.raises(UserError, match="only if the backbone is frozen"):
        macs(8, 10, 1, cached=True)
    with pytest.raises(UserError, match="head"):
        macs(8, 10, 1, trained_part="tail")  # type: ignore[arg-type]


N, RESNET18, RESNET50, CONV4 = 89_921, 1.8186, 4.138, 0.698
PASSES = 3_060_000


def test_macs_of_the_printed_tables() -> None:
    """In millions of GMAC, to all printed digits; LwF's cells are multiples of standard training's."""
    million = 1e6
    assert training_passes(N, 5000, 4) == PASSES
    assert round(macs(N, RESNET18) / million, 2) == 0.16
    assert macs(N, RESNET18) / million == pytest.approx(0.1635, abs=5e-5)
    frozen = macs(N, RESNET18, trained_part="head", passes=PASSES, backward=0)
    assert round(frozen / million, 2) == 5.73
    assert round(macs(N, RESNET18, trained_part="head", passes=PASSES, cached=True) / million, 2) == 0.16
    twice, thrice = macs(N, RESNET18, passes=PASSES, backward=1), macs(N, RESNET50, passes=PASSES, backward=2)
    assert round(twice / million, 2) == 11.29
    assert thrice / million == pytest.approx(38.36, abs=0.005)
    printed = [round(twice / million, 2) * k for k in (2, 4)] + [round(thrice / million, 2) * k for k in (1, 2)]
    assert printed == pytest.approx([22.58, 45.16, 38.36, 76.72])
    assert round(macs(N, CONV4) / million, 2) == 0.06
    assert round(macs(N, CONV4, trained_part="head", passes=PASSES, backward=0) / million, 2) == 2.20
    # the same convention for both networks cannot give both cells
    assert round(macs(N, RESNET18, passes=PASSES, backward=2) / million, 2) != 11.29


def test_macs_of_oltr_are_not_those_of_its_schedule() -> None:
    """Every 200 samples up to 10,000, then every 5,000: 7.47, and 6.39 is printed."""
    passed = training_passes(10_000, 200, 4) + training_passes(N, 5000, 4) - training_passes(10_000, 5000, 4)
    assert passed == 4_020_000
    assert round(macs(N, RESNET18, trained_part="head", passes=passed, backward=0) / 1e6, 2) == 7.47


def test_the_bill_of_a_run() -> None:
    assert openworld.total_macs(forward=88 + 24, backward=48) == macs(
        8, 10, 1, trained_part="head", passes=24, cached=True
    )
    assert openworld.total_macs(forward=88 + 24, backward=48, saved=240) == macs(
        8, 10, 1, trained_part="head", passes=24
    )


def test_episodes_count_alike() -> None:
    assert openworld.few_shot_accuracy([[1, 0], [1, 1]]) == 0.75


def test_errors_in_words() -> None:
    with pytest.raises(UserError, match="a label for each sample"):
        openworld.mean_class([1, 0], [1])
    with pytest.raises(UserError, match="right or wrong for each sample"):
        rolling([])
    with pytest.raises(UserError, match="which is a number"):
        best_accuracy_with_unseen([1], [0], [np.nan])
