"""Recalibration, dates, metrics, sizes and survival: worked examples and equality of independent routes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from driftline.auditing.change_date import date_of_change
from driftline.auditing.estimate import Estimate
from driftline.auditing.horizons import age_curve, drift_events, stability_events, stability_horizon, survival
from driftline.auditing.metric import CLASS_METRICS, NUMBER_METRICS, choose_metrics, default_metric
from driftline.auditing.recalibration import fit_binary, log_loss, recalibrated_loss, recalibrated_squares
from driftline.auditing.score_matrix import ScoreMatrix
from driftline.auditing.shape import Cut
from driftline.auditing.sizes import loss_across, loss_per_period, measure_sizes
from driftline.errors import UserError
from driftline.tasks import Classification, Regression

RANDOM = np.random.default_rng(0)


def matrix(A: np.ndarray, n: int = 4) -> ScoreMatrix:
    """Return scores without noise whose means are A."""
    periods = np.repeat(np.arange(len(A)), n)
    return ScoreMatrix((A[:, periods], A[:, periods]), (periods, periods))


def test_recalibration_finds_what_was_distorted() -> None:
    logit = RANDOM.normal(size=20_000)
    y = (RANDOM.random(20_000) < 1 / (1 + np.exp(-(0.7 + 2 * logit)))).astype(float)
    a, b = fit_binary(logit, y, np.zeros(20_000, int))
    assert (a[0], b[0]) == pytest.approx((0.7, 2.0), abs=0.1)


def test_an_inverted_concept_is_not_recalibrated_away() -> None:
    p = np.array([0.9, 0.1] * 200)
    y = np.array([0, 1] * 200)
    probability = np.stack([1 - p, p], axis=1)
    entropy = np.log(2)
    assert recalibrated_loss(probability, y, np.zeros(400, int)).mean() == pytest.approx(entropy, abs=0.01)
    assert log_loss(probability, y).mean() > 2


def test_several_classes_are_recalibrated() -> None:
    y = RANDOM.integers(0, 3, 3000)
    scores = RANDOM.normal(size=(3000, 3)) + 2 * np.eye(3)[y]
    right = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    off = np.exp(3 * scores + [2.0, 0, -2]) / np.exp(3 * scores + [2.0, 0, -2]).sum(1, keepdims=True)
    cell = np.zeros(3000, int)
    best = recalibrated_loss(right, y, cell).mean()
    assert log_loss(off, y).mean() > best + 0.2
    assert recalibrated_loss(off, y, cell).mean() == pytest.approx(best, abs=0.05)


def test_numbers_are_recalibrated_by_regression() -> None:
    x = RANDOM.normal(size=500)
    y = 3 + 2 * x
    assert recalibrated_squares(x, y, np.zeros(500, int)).mean() == pytest.approx(0, abs=1e-20)
    inverted = recalibrated_squares(-x, y, np.zeros(500, int)).mean()
    assert inverted == pytest.approx(y.var())


def test_the_date_of_a_change_lies_where_losses_cross() -> None:
    periods = np.repeat(np.arange(6), 20)
    times = np.arange(120.0)
    after = (times >= 50)[None, :] == (np.arange(6) >= 3)[:, None]
    losses = np.where(after, 0.2, 1.0)
    found = date_of_change(Cut(3), (0, 6), (losses, losses), (periods, periods), (times, times + 0.5))
    assert found.at == 50
    assert found.low <= 50 <= found.high <= 54


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", lambda y, p, s: sk.accuracy_score(y, p)),
        ("balanced", lambda y, p, s: sk.balanced_accuracy_score(y, p)),
        ("f1", lambda y, p, s: sk.f1_score(y, p, average="macro")),
        ("auc", lambda y, p, s: sk.roc_auc_score(y, s[:, 1])),
        ("average-precision", lambda y, p, s: sk.average_precision_score(y, s[:, 1])),
        ("log-loss", lambda y, p, s: sk.log_loss(y, s)),
        ("brier", lambda y, p, s: sk.brier_score_loss(y, s[:, 1])),
    ],
)
def test_the_mean_of_the_rows_is_the_metric(name: str, expected: object) -> None:
    random = np.random.default_rng(1)
    y = (random.random(300) < 0.3).astype(int)
    positive = np.clip(0.3 + 0.3 * y + 0.2 * random.normal(size=300), 0.01, 0.99).round(2)
    scores = np.stack([1 - positive, positive], axis=1)
    rows = CLASS_METRICS[name].rows(y, (positive > 0.5).astype(int), scores)
    assert rows.mean() == pytest.approx(expected(y, (positive > 0.5).astype(int), scores))  # type: ignore[operator]
    assert rows.std() > 0


@pytest.mark.parametrize(("name", "expected"), [("mae", 1.5), ("rmse", np.sqrt(2.5)), ("r2", 1 - 2.5 / 1.25)])
def test_metrics_of_numbers_by_hand(name: str, expected: float) -> None:
    y, predicted = np.array([0.0, 1, 2, 3]), np.array([1.0, 3, 3, 1])
    assert NUMBER_METRICS[name].rows(y, predicted, None).mean() == pytest.approx(expected)


def test_the_default_metric_follows_task_and_balance() -> None:
    two, three = Classification(("a", "b")), Classification(("a", "b", "c"))
    rare = np.repeat([0, 1], [977, 23])
    assert default_metric(two, np.repeat([0, 1], 50), True) == "accuracy"
    assert default_metric(two, rare, True) == "auc"
    assert default_metric(two, rare, False) == "balanced"
    assert default_metric(three, np.repeat([0, 1, 2], [90, 5, 5]), True) == "balanced"
    assert default_metric(Regression(), np.zeros(3), False) == "rmse"


def test_a_function_is_a_metric_with_influence() -> None:
    def mean_error(y: np.ndarray, predicted: np.ndarray) -> float:
        return float(np.abs(y - predicted).mean())

    mean_error.lower_is_better = True  # type: ignore[attr-defined]
    (metric,) = choose_metrics([mean_error], Regression(), np.zeros(3), False, None)
    y, predicted = RANDOM.normal(size=(2, 40))
    assert not metric.higher_is_better
    assert metric.rows(y, predicted, None).mean() == pytest.approx(mean_error(y, predicted))


@pytest.mark.parametrize(
    ("name", "task", "sentence"),
    [
        ("rmse", Classification(("a", "b")), "is for numbers"),
        ("auc", Classification(("a", "b", "c")), "needs a target with two classes"),
        ("acuracy", Classification(("a", "b")), "Did you mean 'accuracy'"),
        ("log-loss", Classification(("a", "b")), "needs class probabilities"),
    ],
)
def test_metrics_that_cannot_be_used_get_a_sentence(name: str, task: Classification, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        choose_metrics([name], task, np.array([0, 1]), name != "log-loss", None)


def test_sizes_by_hand() -> None:
    A = np.array([[0.80, 0.72, 0.45], [0.7, 0.75, 0.66], [0.5, 0.6, 0.60]])
    sizes = measure_sizes(CLASS_METRICS["accuracy"], matrix(A), matrix(np.full((3, 3), 0.5)))
    assert sizes.staleness.value == pytest.approx((0.03 + 0.15 - 0.06) / 3)
    assert sizes.tas.value == pytest.approx((0.72 + 0.45 + 0.66) / (0.75 + 0.60 + 0.60))
    assert sizes.tas_minimum.value == pytest.approx((0.72 + 0.45) / 1.35)
    assert sizes.fresh.value == pytest.approx((0.75 + 0.6 + 0.6) / 3)
    assert sizes.fresh.value - sizes.old.value == pytest.approx(sizes.staleness.value)
    assert [e.value for e in sizes.loss_by_age] == pytest.approx([(0.03 - 0.06) / 2, 0.15])
    assert sizes.above.value == pytest.approx((0.8 + 0.75 + 0.6) / 3 - 0.5)
    assert loss_across(matrix(A), 2, True).value == pytest.approx((0.15 - 0.06) / 2)
    assert loss_per_period(matrix(A), True).value == pytest.approx((0.03 - 0.06) / 2)


def test_a_loss_becomes_skill_against_the_constant() -> None:
    loss = np.array([[1.0, 2.0, 2.0], [2.0, 1.0, 2.0], [2.0, 2.0, 1.0]])
    sizes = measure_sizes(NUMBER_METRICS["rmse"], matrix(loss), matrix(np.full((3, 3), 4.0)))
    assert sizes.staleness.value == pytest.approx(1.0), "in units of the target, positive where old models are worse"
    assert sizes.tas.value == pytest.approx((1 - 2 / 4) / (1 - 1 / 4))


def test_the_error_of_a_contrast_is_that_of_repeated_draws() -> None:
    """Rows are drawn again and again; the spread of the loss is what the interval says, training noise aside."""
    random = np.random.default_rng(0)
    periods = np.repeat(np.arange(6), 40)
    values, errors = [], []
    for _ in range(100):
        rows = tuple((random.random((6, 240)) < 0.7).astype(float) for _ in range(2))
        found = measure_sizes(
            CLASS_METRICS["accuracy"], ScoreMatrix(rows, (periods, periods)), matrix(np.zeros((6, 6)), 40)
        )
        values.append(found.tas.value)
        errors.append((found.tas.high - found.tas.low) / 2)
    assert np.mean(np.abs(np.array(values) - 1) <= errors) >= 0.93


def test_survival_counts_models_that_were_seen() -> None:
    A = np.full((5, 5), 0.9)
    A[0, 2:] = 0.5
    A[1, 3] = 0.5
    events = stability_events(A, 0.9)
    assert events.tolist() == [2, 2, 0, 0, 0]
    assert survival(events, 2).tolist() == pytest.approx([1.0, 1 / 3])
    assert drift_events(np.full((4, 4), 0.9)).tolist() == [0, 0, 0, 0]
    assert drift_events(A)[0] == 2
    both = np.stack([A, np.full((5, 5), 0.9)])
    assert stability_events(both, 0.9).tolist() == [events.tolist(), [0] * 5], "many matrices at once"
    assert drift_events(both)[0].tolist() == drift_events(A).tolist()
    assert survival(stability_events(both, 0.9), 2).tolist() == [survival(events, 2).tolist(), [1.0, 1.0]]


def test_a_horizon_is_inside_of_its_interval_and_does_not_depend_on_order_without_drift() -> None:
    random = np.random.default_rng(0)
    periods = np.repeat(np.arange(10), 30)
    rows = tuple((random.random((10, 300)) < 0.8).astype(float) for _ in range(2))
    scores = ScoreMatrix(rows, (periods, periods))
    horizon = stability_horizon(scores, 0.9, random)
    assert horizon.low <= horizon.value <= horizon.high <= horizon.limit == 5
    assert not horizon.depends_on_order
    assert age_curve(scores, 0.9).horizon is None


def test_an_abrupt_change_ends_the_age_curve() -> None:
    late = np.arange(10) >= 5
    A = np.where(late[:, None] == late, 0.9, 0.5)
    curve = age_curve(matrix(A), 0.9)
    ratios = [(0.9 * (10 - h - min(h, 5)) + 0.5 * min(h, 5)) / (0.9 * (10 - h)) for h in range(1, 6)]
    assert [e.value for e in curve.by_age] == pytest.approx(ratios)
    assert curve.horizon == next(h for h, ratio in enumerate(ratios, 1) if ratio < 0.9)
    assert stability_horizon(matrix(A), 0.9, np.random.default_rng(0)).p <= 0.05


def test_the_interval_of_a_score_holds_possible_values_only() -> None:
    right = np.random.default_rng(0).random((3, 30)) > 0.03
    assert 0 < (~right).sum() < 9
    scores, periods = right.astype(float), np.repeat(np.arange(3), 10)
    made = ScoreMatrix((scores, scores), (periods, periods))
    assert made.estimate(np.eye(3) / 3).high > 1
    found = measure_sizes(CLASS_METRICS["accuracy"], made, made)
    for one in (found.fresh, found.old, found.first_own, found.first_later, found.baseline):
        assert 0 <= one.low <= one.value <= one.high <= 1
    wide = Estimate(0.5, -3.0, 3.0)
    bounds = {"accuracy": (0, 1), "log-loss": (-3, 3), "rmse": (0, 3), "r2": (-3, 1)}
    for name, ends in bounds.items():
        clipped = (CLASS_METRICS | NUMBER_METRICS)[name].within(wide)
        assert (clipped.low, clipped.high) == ends
