"""Quality before labels: estimators recover what they assume, and miss what they cannot see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.auditing.test_findings import DATE, NAMES, STRONG, verdict

from driftline.auditing.arrivals import arrive_late
from driftline.auditing.calibration_over_time import (
    Calibration,
    _corrected,
    _measure,
    calibration_sentences,
)
from driftline.auditing.metric import CLASS_METRICS, NUMBER_METRICS
from driftline.auditing.quality_estimators import estimable, fit_estimator
from driftline.auditing.recalibration import fit_recalibration
from driftline.auditing.shape import Cut, Shape
from driftline.auditing.unlabeled import EstimatedPeriod, EstimatedQuality, estimate_quality, estimate_sentences
from driftline.seeds import Seed
from driftline.types import Answers, Samples

ACCURACY = CLASS_METRICS["accuracy"]
NO_INPUTS = pd.DataFrame(index=range(0))


def sigmoid(z: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-z)))


def overconfident(n: int, seed: int, spread: float = 1.5) -> tuple[Answers, np.ndarray, np.ndarray]:
    """Answers whose logits are twice too large and shifted, their labels, and the true probabilities."""
    random = np.random.default_rng(seed)
    logit = random.normal(0, spread, n)
    p = sigmoid(logit)
    y = (random.random(n) < p).astype(int)
    given = sigmoid(2 * logit + 1)
    return Answers((given > 0.5).astype(int), np.stack([1 - given, given], axis=1)), y, p


def test_confidence_is_recalibrated_before_it_is_averaged() -> None:
    answers, y, _ = overconfident(20_000, 0)
    estimator = fit_estimator(ACCURACY, NO_INPUTS, answers, y, Seed(0))
    new, _, p = overconfident(20_000, 1, spread=3.0)  # inputs on which the model is more sure
    expected = np.where(new.prediction == 1, p, 1 - p).mean()
    assert estimator.estimate(NO_INPUTS, new) == pytest.approx(expected, abs=0.01)
    assert new.scores is not None
    assert abs(new.scores.max(axis=1).mean() - expected) > 0.03  # without recalibration it is too sure


@pytest.mark.parametrize("name", ["auc", "f1", "log-loss", "balanced"])
def test_other_metrics_are_expected_over_drawn_labels(name: str) -> None:
    answers, y, _ = overconfident(4_000, 0)
    metric = CLASS_METRICS[name]
    new, truth, _ = overconfident(4_000, 1)
    estimated = fit_estimator(metric, NO_INPUTS, answers, y, Seed(0)).estimate(NO_INPUTS, new)
    assert estimated == pytest.approx(metric.rows(truth, new.prediction, new.scores).mean(), abs=0.04)


def test_several_classes_are_recalibrated() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=(5_000, 3))
    true = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = (random.random(5_000)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    sure = np.exp(3 * scores + [0.5, 0, 0])
    fitted = fit_recalibration(sure / sure.sum(axis=1, keepdims=True), y)
    assert fitted.slope == pytest.approx(1 / 3, abs=0.03)
    assert np.abs(fitted.apply(sure / sure.sum(axis=1, keepdims=True)) - true).mean() < 0.02


@pytest.mark.parametrize("name", ["mae", "rmse"])
def test_errors_of_numbers_follow_the_inputs(name: str) -> None:
    random = np.random.default_rng(0)

    def rows(center: float) -> tuple[pd.DataFrame, Answers, np.ndarray]:
        x = random.normal(center, 1, 1_500)
        return pd.DataFrame({"x": x}), Answers(np.zeros(1_500)), np.where(x > 0, 3.0, 1.0) * random.normal(size=1_500)

    metric = NUMBER_METRICS[name]
    inputs, answers, y = rows(0.0)
    estimator = fit_estimator(metric, inputs, answers, y, Seed(0))
    later, given, truth = rows(1.0)
    real, before = (metric.rows(t, a.prediction, None).mean() for t, a in ((truth, given), (y, answers)))
    assert abs(estimator.estimate(later, given) - real) < 0.4 * abs(before - real)


def test_metrics_of_numbers_without_an_estimator_become_the_absolute_error() -> None:
    assert estimable(NUMBER_METRICS["r2"], False).name == "mae"
    assert estimable(NUMBER_METRICS["rmse"], False).name == "rmse"


def log_table(shifts: list[float], rows: int = 400, delay: int = 0) -> tuple[Any, dict[int, Answers]]:
    """Periods of a fixed model; from period 4 on, labels are turned around if `shifts` says so."""
    periods, answers = [], {}
    for k, shift in enumerate(shifts):
        given, y, _ = overconfident(rows, k)
        y = np.where(np.random.default_rng(k).random(rows) < shift, 1 - y, y)
        ids = np.arange(k * rows, (k + 1) * rows)
        periods.append(Samples(x=ids, y=y, id=ids))
        answers[k] = given
    table = SimpleNamespace(
        periods=tuple(periods),
        names=tuple(f"month {k}" for k in range(len(shifts))),
        starts=(np.datetime64("2024-01") + np.arange(len(shifts))).astype("datetime64[D]"),
        arrivals=arrive_late(tuple(periods), delay),
        frame=SimpleNamespace(inputs=pd.DataFrame(index=range(rows * len(shifts)))),
        is_classification=True,
        seed=Seed(0),
    )
    return table, answers


def test_each_period_is_estimated_from_labels_before_it() -> None:
    table, answers = log_table([0.0] * 5 + [0.5] * 5)
    changed = verdict(recalibrated=STRONG, shape=Shape("abrupt", cuts=(Cut(5),)), dates=(DATE,))
    found = estimate_quality(table, ACCURACY, answers, {"June": (table.periods[0], answers[0])}, changed)
    assert found is not None
    assert [p.period for p in found.periods] == [f"month {k}" for k in range(1, 10)]
    first = found.periods[4]  # the first period after the change
    assert first.real == pytest.approx(0.5, abs=0.06)
    assert first.estimated == pytest.approx(first.carried, abs=0.05)
    assert found.periods[-1].estimated == pytest.approx(0.5, abs=0.06)  # labels of after the change are known by then
    assert found.missed is not None
    assert found.missed.startswith("Estimates without labels did not see the change of 14 May 2024")
    assert found.error == pytest.approx(np.mean([abs(p.estimated - p.real) for p in found.periods]))  # type: ignore[operator]
    late = estimate_quality(*_with_delay(3), {}, None)
    assert late is not None
    assert late.periods[0].period == "month 4"
    assert [p.period for p in late.periods if abs(p.estimated - p.carried) < 0.06 and p.real < 0.6][:1] == ["month 5"]  # type: ignore[operator]


def _with_delay(delay: int) -> tuple[Any, Any, dict[int, Answers]]:
    table, answers = log_table([0.0] * 5 + [0.5] * 5, delay=delay)
    return table, ACCURACY, answers


def test_sentences_about_estimates() -> None:
    row = EstimatedPeriod("June", 0.78, 0.8, None, 120)
    good = EstimatedQuality(ACCURACY, (row,) * 4, (row,), 0.018, 0.039)
    output = " ".join(estimate_sentences(good, "y", NAMES))
    assert "off by 1.8 points on average over 4 periods; carrying the last known value forward, by 3.9 points" in output
    assert "June: 120 rows without 'y', estimated 78.0%." in output
    assert output.endswith("cannot see it change.")
    bad = EstimatedQuality(ACCURACY, (row,) * 4, (row,), 0.02, 0.015, "Estimates did not see it.")
    output = " ".join(estimate_sentences(bad, "y", NAMES))
    assert "no better than carrying the last known accuracy forward (1.5 points), so none is shown" in output
    assert "June" not in output
    assert output.endswith("did not see it.")
    assert estimate_sentences(None, "y", NAMES)[0].startswith("Not known")


def test_calibration_recovers_intercept_and_slope() -> None:
    answers, y, _ = overconfident(20_000, 0)
    assert answers.scores is not None
    found = _measure("May", answers.scores[:, 1], y.astype(float))
    assert found.slope.value == pytest.approx(0.5, abs=0.03)
    assert found.intercept.value == pytest.approx(-0.5, abs=0.05)
    assert found.slope.low < 0.5 < found.slope.high
    assert found.p < 1e-6
    right = _measure("May", sigmoid(np.log(np.divide(*np.flip(answers.scores, 1).T)) / 2 - 0.5), y.astype(float))
    assert right.p > 0.01
    assert right.error < 0.02 < found.error
    holm = [part.p for part in _corrected([right, found, right])]
    assert holm == pytest.approx([min(1, 2 * right.p), 3 * found.p, min(1, 2 * right.p)])


def test_sentences_about_calibration() -> None:
    answers, y, p = overconfident(2_000, 0)
    assert answers.scores is not None
    off, right = _measure("May", answers.scores[:, 1], y.astype(float)), _measure("June", p, y.astype(float))
    assert calibration_sentences(Calibration("'yes'", (right,)), NAMES) == [
        "Probabilities of 'yes' are not significantly off in any of 1 periods."
    ]
    output = calibration_sentences(Calibration("'yes'", (right, off)), NAMES)[0]
    assert "significantly off in 1 of 2 periods, first in May. In May they are too high" in output


@pytest.mark.parametrize(
    ("factor", "words"),
    [(2.0, "they are overconfident: "), (0.5, "they are underconfident: "), (1.0, "are not significantly off")],
)
def test_confidence_is_named_where_the_mean_is_right(factor: float, words: str) -> None:
    """Symmetric logits: however they are scaled, their mean probability stays right."""
    logits = np.tile(np.linspace(-3, 3, 61), 100)
    y = np.random.default_rng(0).random(len(logits)) < sigmoid(logits)
    found = _measure("May", sigmoid(factor * logits), y.astype(float))
    assert words in calibration_sentences(Calibration("'yes'", (found,)), NAMES)[0]
