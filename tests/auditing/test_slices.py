"""Slices: the one segment that drifts is named, and none without drift. Losses are constructed, nothing is fitted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.auditing.test_findings import verdict

from driftline.auditing.matrix import Halves, LossMatrix
from driftline.auditing.metric import CLASS_METRICS, NUMBER_METRICS
from driftline.auditing.score_matrix import ScoreMatrix
from driftline.auditing.slices import Slices, _cut, corrected_p_values, measure_slices, slice_sentences
from driftline.seeds import Seed
from driftline.types import Samples

PERIODS, ROWS, CUT = 12, 60, 6
COLORS = np.array(["red", "green", "blue"])


def measured(size: float, everywhere: bool = False, noise: float = 0.0, metric: Any = None) -> Slices:
    """Slices of losses that are higher by `size` where model and row lie on different sides of the change."""
    random = np.random.default_rng(3)
    period = np.repeat(np.arange(PERIODS), ROWS // 2)
    n = len(period)
    color = random.choice(COLORS, 2 * n)
    inputs = pd.DataFrame({"color": pd.Categorical(color), "x": random.normal(size=2 * n)})
    halves, rows = [], []
    for half in (0, 1):
        chosen = np.ones(n, bool) if everywhere else color[half * n : (half + 1) * n] == "red"
        other_side = (np.arange(PERIODS)[:, None] < CUT) != (period < CUT)
        loss = 1 + 0.3 * random.normal(size=(PERIODS, n)) + 0.3 * random.normal(size=n) + size * other_side * chosen
        rows.append(loss + noise * np.arange(PERIODS)[:, None] / PERIODS)
        ids = np.arange(half * n, (half + 1) * n)
        halves.append(Samples(x=ids, y=np.zeros(n, int), id=ids))
    scores = ScoreMatrix((rows[0], rows[1]), (period, period))
    names = tuple(map(str, range(PERIODS)))
    parts = Halves(names, 1, ((), ()), (halves[0], halves[1]), (period, period), False)
    metric = metric or CLASS_METRICS["log-loss"]
    number = metric.name == "rmse"
    matrix = LossMatrix(parts, scores, scores, scores, {metric.name: scores}, {}, number, np.zeros(2 * n))
    table: Any = SimpleNamespace(frame=SimpleNamespace(inputs=inputs), has_probabilities=not number, seed=Seed(0))
    found = measure_slices(table, matrix, metric, verdict())
    assert found is not None
    return found


def test_the_segment_that_drifts_is_the_only_one_that_stands_out() -> None:
    slices = measured(0.5)
    assert len(slices.segments) == 7  # three colors and four quarters
    red = slices.segments[0]
    assert [(s.feature, s.values) for s in slices.segments if s.stands_out] == [("color", "red")]
    assert red.loss.value == pytest.approx(0.5 * 36 / 66, abs=0.06)  # 36 of 66 pairs lie across the change
    assert red.elsewhere.low < 0 < red.elsewhere.high
    assert red.first_age == 2  # at age 1 only one of eleven models lies across the change
    assert not any(s.decays for s in slices.segments if s.values in ("green", "blue"))
    output = " ".join(slice_sentences(slices, lambda age: f"{age:g} weeks"))
    assert "'color' red: older models lose 0." in output
    assert "surely from an age of 2 weeks on" in output


def test_no_segment_decays_without_drift() -> None:
    for slices in (measured(0.0), measured(0.0, noise=1.0)):  # newer models that are worse everywhere are no decay
        assert not slices.decaying
        assert slice_sentences(slices, str) == [
            "A lasting decay is significant in none of 7 segments (categories and quarters of features)."
        ]


def test_a_change_in_all_rows_lets_no_segment_stand_out() -> None:
    slices = measured(0.5, everywhere=True)
    assert len(slices.decaying) == 7
    assert not any(s.stands_out for s in slices.segments)
    assert slice_sentences(slices, str)[-1] == "None of them surely loses more than the other rows."


def test_sizes_of_numbers_are_root_mean_squares() -> None:
    plain, rooted = measured(0.5), measured(0.5, metric=NUMBER_METRICS["rmse"])
    red = rooted.segments[0]
    assert rooted.metric.name == "rmse"
    assert red.fresh.value == pytest.approx(np.sqrt(plain.segments[0].fresh.value), rel=0.02)
    assert red.old.value - red.fresh.value == pytest.approx(red.loss.value)


def test_p_values_are_corrected_for_the_number_of_segments() -> None:
    random = np.random.default_rng(0)
    alike = [random.normal(size=(10, 10)) for _ in range(20)]
    alike = [a + a.T for a in alike]
    alone = np.array([corrected_p_values([a], np.random.default_rng(1))[0] for a in alike])
    together = corrected_p_values(alike, np.random.default_rng(1))
    assert (together >= alone).all()
    assert together.min() > 2 * alone.min()
    assert (np.argsort(together)[0] == np.argsort(alone)[0]) or together.min() == 1


@pytest.mark.parametrize(
    ("column", "segments"),
    [
        (pd.Series([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, np.nan]), 5),
        (pd.Series([0.0] * 7 + [1.0, 2.0, 3.0, 4.0]), 2),  # quarters that coincide are one segment
        (pd.Series([0, 1, 1, 0]), 2),
        (pd.Series(pd.Categorical(["a", None, "b", "a"])), 3),
    ],
)
def test_segments_cover_each_row_once(column: pd.Series, segments: int) -> None:
    masks = [mask for _, mask in _cut(column) if mask.any()]
    assert len(masks) == segments
    assert (np.sum(masks, axis=0) == 1).all()


def test_texts_have_no_segments() -> None:
    assert not list(_cut(pd.Series(["one long text", "and another one"])))
