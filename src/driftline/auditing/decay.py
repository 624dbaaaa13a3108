"""A(t, tau), the quality of the model of each period in all later ones, and the decay measured with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial as fix
from typing import Literal

import numpy as np
import pandas as pd

from driftline import loop
from driftline.auditing.estimate import DRAWS, Estimate, HorizonEstimate
from driftline.auditing.table import AuditTable, draw
from driftline.learners.supervised.erm import ERM
from driftline.metrics.confidence import (
    Interval,
    accuracy_matrix,
    are_proportions,
    bootstrap_matrices,
    bootstrap_means,
    percentile_interval,
    standard_error,
    standard_errors,
    wilson,
)
from driftline.metrics.horizons import drift_horizon, false_alarm_rate, horizon_bounds, stability_horizon
from driftline.metrics.per_period import Horizon, diagonal, rows_by_age
from driftline.metrics.temporal import adaptation_score, period_answers, transfer_ratio, with_r2
from driftline.record.recorder import MemoryRecorder
from driftline.reveal import RevealPolicy
from driftline.streams.timeline import LaterPeriodProbes, PeriodRange
from driftline.types import Probe, Reveal, Samples, Step

EPSILON, THRESHOLD = 0.01, 0.15  # of the drift horizon
ALLOWANCE = 1.96  # standard errors that count as noise in horizons


@dataclass(frozen=True, eq=False)
class AccuracyMatrix:
    """A(t, tau) and the ratio g(t, tau) to a new model, each with its interval. NaN: not evaluated, or no ratio."""

    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ttr: np.ndarray
    ttr_low: np.ndarray
    ttr_high: np.ndarray
    n: np.ndarray
    """Answers behind each entry."""
    delta: float
    """The ratio from which on a model counts as valid."""


@dataclass(frozen=True, eq=False)
class Decay:
    """Decay of models that were trained on one period each."""

    tas: Estimate
    tas_minimum: Estimate
    sh: HorizonEstimate
    sh_minimum: Estimate
    dh: HorizonEstimate
    dh_minimum: Estimate
    fresh: Estimate
    """Quality of new models in their own period."""
    staleness: Estimate
    """Quality that old models lack compared with new ones."""
    harder: Estimate
    """Quality that new models lose from the first to the second half of the time."""
    first_own: Estimate
    """Quality of the first model in its own period."""
    first_later: Estimate
    """Quality of the first model in later periods."""
    loss_by_age: tuple[Estimate, ...]
    """Quality that models lack compared with new ones, after 1, 2, ... periods."""
    matrix: AccuracyMatrix

    @property
    def cause(self) -> Literal["model", "data", "both", "neither", "unknown"]:
        """What costs quality; unknown if even new models may have none."""
        if not self.fresh.is_positive:
            return "unknown"
        if self.staleness.is_substantial:
            return "both" if self.harder.is_substantial else "model"
        return "data" if self.harder.is_substantial else "neither"


@dataclass(frozen=True, eq=False)
class LogDecay:
    """Decay of logged predictions, without new models to compare with."""

    dh: HorizonEstimate
    first_own: Estimate
    """Quality in the first period."""
    first_later: Estimate
    by_period: tuple[Estimate, ...]


@dataclass(frozen=True)
class CappedProbes:
    """The held-out rows of a period, then at most `limits.probe_rows` rows of each later one, the same every time."""

    table: AuditTable

    def due(self, step: Step | None) -> Iterable[Probe]:
        for probe in LaterPeriodProbes(self.table.periods).due(step):
            own = step is not None and probe.name == step.time
            yield Probe(probe.name, probe.samples if own else probe_rows(self.table, probe.name, probe.samples))


def probe_rows(table: AuditTable, name: str, samples: Samples) -> Samples:
    """Return the rows of a later period on which models are evaluated."""
    return draw(samples, table.limits.probe_rows, table.seed.child("examined", name))


def evaluate_models(table: AuditTable) -> pd.DataFrame:
    """Train a model on each period and return its answers on the later ones, one row per answer."""
    task = table.frame.task
    learner, record = ERM(), MemoryRecorder(task)
    learner.seed = table.seed.child("learner")
    learner.prepare(table.new_model(), task)
    stream = PeriodRange(table.periods, 0, len(table.periods))
    loop.run(stream, learner, RevealPolicy(task, Reveal.LABELS, table.seed), CappedProbes(table), record)
    return record.probes


def logged_answers(table: AuditTable) -> pd.DataFrame:
    """Return the logged predictions in the same form, as of one model deployed before the first period."""
    frame = table.frame
    assert frame.logged_predictions is not None
    predictions = pd.Series(frame.logged_predictions, index=frame.samples.id)
    parts = []
    for k, name in enumerate(table.names):
        samples = table.rows(k)
        predicted = predictions.loc[samples.id].to_numpy()
        correct = frame.task.correct(predicted, samples.y)
        columns = {"id": samples.id, "truth": samples.y, "prediction": predicted, "correct": correct}
        parts.append(pd.DataFrame({**columns, "step": 0, "probe": name}))
    return pd.concat(parts, ignore_index=True)


def with_scores(table: AuditTable, probes: pd.DataFrame) -> pd.DataFrame:
    """Return probes whose `correct` averages to accuracy, or to R^2 for numbers."""
    return probes if table.is_classification else with_r2(probes)


def measure_decay(table: AuditTable, probes: pd.DataFrame, delta: float) -> Decay:
    """Return the decay of models from their answers."""
    columns = period_answers(with_scores(table, probes), table.names)
    A, n = accuracy_matrix(columns)
    draws = bootstrap_matrices(columns, DRAWS, table.seed.child("bootstrap").numpy())
    raw, raw_draws = A, draws  # cut at 0, the small held-out parts of the diagonal would look too good
    A, draws = np.maximum(A, 0), np.maximum(draws, 0)
    limit = max(1, len(A) // 2)  # models with fewer later periods could not show decay
    drift = fix(drift_horizon, epsilon=EPSILON, threshold=THRESHOLD, direction="drop", horizon=limit)
    errors = standard_errors(columns)
    tas, tas_minimum = _adaptation(A, draws)
    sh, sh_minimum = _horizon(fix(stability_horizon, delta=delta), A, errors)
    dh, dh_minimum = _horizon(drift, A, errors, limit)
    loss, loss_draws = _loss_by_age(raw), _loss_by_age(raw_draws)
    answers, models, estimate = int(np.triu(n, 1).sum()), len(A), Estimate.from_draws
    diagonal, diagonal_draws = np.diag(raw), np.diagonal(raw_draws, 0, 1, 2)
    return Decay(
        tas=tas,
        tas_minimum=tas_minimum,
        sh=sh,
        sh_minimum=sh_minimum,
        dh=dh,
        dh_minimum=dh_minimum,
        fresh=estimate(finite_mean(diagonal), finite_mean(diagonal_draws), models, "models"),
        staleness=estimate(_mean_by_model(loss), _mean_by_model(loss_draws), answers, "answers"),
        harder=estimate(_loss_of_new(diagonal), _loss_of_new(diagonal_draws), np.diag(n).sum(), "answers"),
        first_own=estimate(raw[0, 0], raw_draws[:, 0, 0], n[0, 0], "answers"),
        first_later=estimate(finite_mean(raw[0, 1:]), finite_mean(raw_draws[:, 0, 1:]), n[0, 1:].sum(), "answers"),
        loss_by_age=tuple(
            estimate(finite_mean(loss[:, k]), finite_mean(loss_draws[:, :, k]), models - 1 - k, "models")
            for k in range(models - 1)
        ),
        matrix=_matrix(A, draws, wilson(np.nan_to_num(A * n), n) if are_proportions(columns) else None, n, delta),
    )


def _adaptation(A: np.ndarray, draws: np.ndarray) -> list[Estimate]:
    """Return mean and minimum TAS. Upper ends are those before clipping, as noise only lowers a clipped ratio."""
    whole, clipped, raw = adaptation_score(A), adaptation_score(draws), adaptation_score(draws, clipping="none")
    models = int(np.isfinite(whole.values).sum())
    estimates = []
    for value, lower, upper in (
        (whole.mean, clipped.mean, raw.mean),
        (whole.minimum, clipped.minimum, raw.minimum),
    ):
        interval = Interval(percentile_interval(lower).low, np.minimum(percentile_interval(upper).high, 1))
        estimates.append(Estimate.from_interval(value, interval, models, "models"))
    return estimates


def _horizon(
    compute: Callable[..., Horizon], A: np.ndarray, errors: np.ndarray, limit: int | None = None
) -> tuple[HorizonEstimate, Estimate]:
    """Return mean and minimum over models of a horizon beyond noise."""
    beyond = fix(compute, error=errors, allowance=ALLOWANCE)
    whole, bounds = beyond(A), horizon_bounds(compute, A, errors)
    models, censored = int(whole.counted.sum()), int((whole.censored & whole.counted).sum())
    low, high = map(float, bounds.mean)
    rate = float(false_alarm_rate(beyond, A, errors))
    mean = HorizonEstimate(float(whole.mean), low, high, models, "models", censored, rate, limit)
    return mean, Estimate.from_interval(whole.minimum, bounds.minimum, models, "models")


def _matrix(A: np.ndarray, draws: np.ndarray, shares: Interval | None, n: np.ndarray, delta: float) -> AccuracyMatrix:
    low, high = shares or percentile_interval(draws)
    ttr_low, ttr_high = percentile_interval(transfer_ratio(draws))
    return AccuracyMatrix(A, low, high, transfer_ratio(A), ttr_low, ttr_high, n, delta)


def _loss_by_age(A: np.ndarray) -> np.ndarray:
    """Return, by model and age from 1 on, the quality of a new model minus that of this one."""
    return rows_by_age(np.broadcast_to(diagonal(A), A.shape) - A)[..., :-1, 1:]


def _loss_of_new(fresh: np.ndarray) -> np.ndarray:
    """Return how much worse new models are in the second half of the time than in the first."""
    half = fresh.shape[-1] // 2
    return np.asarray(finite_mean(fresh[..., :half]) - finite_mean(fresh[..., -half:]))


def _mean_by_model(loss: np.ndarray) -> np.ndarray:
    """Return the mean over each model's future, then over models, so that older models do not count more."""
    return finite_mean(finite_mean(loss))


def finite_mean(values: np.ndarray) -> np.ndarray:
    """Return the mean over the last axis of the finite values; NaN if there are none."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    return np.asarray(np.where(known, values, 0).sum(axis=-1) / np.where(count, count, np.nan))


def measure_log_decay(table: AuditTable, probes: pd.DataFrame) -> LogDecay:
    """Return the decay of logged predictions: quality by period and drift horizon."""
    by_period = with_scores(table, probes).groupby("probe", sort=False)["correct"]
    values = [by_period.get_group(name).to_numpy() for name in table.names]
    random = table.seed.child("bootstrap").numpy()
    means = np.maximum([part.mean() for part in values], 0)
    draws = np.maximum(np.stack([bootstrap_means(part, DRAWS, random) for part in values], axis=1), 0)
    n = [len(part) for part in values]
    errors = _one_row(np.array([standard_error(part, np.ones(len(part))) for part in values]))
    drift = fix(drift_horizon, epsilon=EPSILON, threshold=THRESHOLD, horizon=len(n) - 1, direction="drop", partial=True)
    return LogDecay(
        dh=_horizon(drift, _one_row(means), errors)[0],
        first_own=Estimate.from_draws(means[0], draws[:, 0], n[0], "answers"),
        first_later=Estimate.from_draws(finite_mean(means[1:]), finite_mean(draws[:, 1:]), sum(n[1:]), "answers"),
        by_period=tuple(Estimate.from_draws(v, d, k, "answers") for v, d, k in zip(means, draws.T, n, strict=True)),
    )


def _one_row(row: np.ndarray) -> np.ndarray:
    """Return a square matrix with this first row and NaN elsewhere."""
    A = np.full((*row.shape, row.shape[-1]), np.nan)
    A[..., 0, :] = row
    return A
