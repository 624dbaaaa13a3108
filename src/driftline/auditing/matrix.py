"""A(t, tau): a new model for each period, examined on all later ones; and the numbers about decay made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial as fix
from typing import Any

import numpy as np
import pandas as pd

from driftline import loop
from driftline.auditing.setting import Setting, draw
from driftline.benchmarks.timeline import LaterPeriods, columns_of, scored
from driftline.learners.erm import ERM
from driftline.metrics.horizons import drift_horizon, false_alarm, horizon_bounds, stability_horizon
from driftline.metrics.intervals import (
    Interval,
    accuracy_matrix,
    are_shares,
    percentile_interval,
    resample,
    resample_mean,
    standard_error,
    standard_errors,
    wilson,
)
from driftline.metrics.steps import Horizon, ahead, oracles
from driftline.metrics.temporal import adaptation_score, transfer_ratio
from driftline.record import Recorder
from driftline.reveal import Revealing
from driftline.streams.periods import Deployment
from driftline.types import Answers, Probe, Reveal, Samples, Step

DRAWS = 500
EPSILON, THRESHOLD, ALLOWANCE = 0.01, 0.15, 1.96  # the allowance in standard errors


class Kept(Recorder):
    """A recorder that keeps answers and examinations in memory."""

    def __init__(self, correct: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self.correct = correct
        self.answers: list[np.ndarray] = []
        self.rows: list[pd.DataFrame] = []

    def answered(self, step: Step, answers: Answers) -> None:
        self.answers.append(np.asarray(answers.prediction))

    def probed(self, step: Step, probe: Probe, answers: Answers) -> None:
        columns = {"id": probe.samples.id, "truth": probe.samples.y, "prediction": answers.prediction}
        right = self.correct(answers.prediction, probe.samples.y)
        self.rows.append(pd.DataFrame({**columns, "correct": right, "step": step.index, "probe": probe.name}))


@dataclass(frozen=True)
class Examination:
    """The probes of a timeline, each on no more rows than the limit; every model sits the same one."""

    setting: Setting

    def due(self, step: Step | None) -> Iterable[Probe]:
        for probe in LaterPeriods(self.setting.cut, 0, None).due(step):
            own = step is not None and probe.name == step.time
            yield Probe(probe.name, probe.samples if own else examined(self.setting, probe.name, probe.samples))


def examined(setting: Setting, name: str, samples: Samples) -> Samples:
    """The rows of a later period that models are examined on."""
    return draw(samples, setting.limits.examined, setting.seed.child("examined", name))


def examine(setting: Setting) -> pd.DataFrame:
    """One row per model and examined row: who answered what."""
    task = setting.frame.task
    learner, record = ERM(), Kept(task.correct)
    learner.seed = setting.seed.child("learner")
    learner.prepare(setting.new_model(), task)
    stream = Deployment(setting.cut, 0, len(setting.cut))
    loop.run(stream, learner, Revealing(task, Reveal.LABELS, setting.seed), Examination(setting), record)
    return pd.concat(record.rows, ignore_index=True).astype({"step": np.int16})


def logged(setting: Setting) -> pd.DataFrame:
    """The predictions that the table holds, as if one model had been deployed before the first period."""
    frame = setting.frame
    assert frame.logged is not None
    answers = pd.Series(frame.logged, index=frame.samples.id)
    rows = []
    for k, name in enumerate(setting.names):
        samples = setting.stream[k].samples
        said = answers.loc[samples.id].to_numpy()
        right = frame.task.correct(said, samples.y)
        columns = {"id": samples.id, "truth": samples.y, "prediction": said, "correct": right}
        rows.append(pd.DataFrame({**columns, "step": 0, "probe": name}))
    return pd.concat(rows, ignore_index=True)


def measured(value: Any, draws: Any, n: int, unit: str, **more: Any) -> dict[str, Any]:
    """A number with its interval and what it rests on."""
    return bounded(value, percentile_interval(draws), n, unit, **more)


def bounded(value: Any, ends: Interval, n: int, unit: str, **more: Any) -> dict[str, Any]:
    """Return a number with this interval and what it rests on."""
    low, high = map(number, ends)
    return {"value": number(value), "low": low, "high": high, "n": int(n), "unit": unit, **more}


def number(value: Any) -> float | None:
    """A float, or None for what is not known, as JSON has no NaN."""
    return float(value) if value is not None and np.isfinite(value) else None


def decay(setting: Setting, probes: pd.DataFrame, delta: float) -> dict[str, Any]:
    """Everything about decay: the matrix, TAS, SH, DH, the loss by age, and who is to blame."""
    kind = "Classification" if setting.classifies else "Regression"
    columns = columns_of(scored(probes, kind), list(setting.names))
    A, n = accuracy_matrix(columns)
    draws = resample(columns, DRAWS, setting.seed.child("bootstrap").numpy())
    raw, raw_draws = A, draws  # a cut at 0 would flatter the small held-out parts of the diagonal
    A, draws = np.maximum(A, 0), np.maximum(draws, 0)
    far = max(1, len(A) // 2)  # models with fewer later periods are left out: they could not show decay
    drifts = fix(drift_horizon, epsilon=EPSILON, threshold=THRESHOLD, direction="drop", horizon=far)
    errors = standard_errors(columns)
    made = _adaptation(A, draws)
    made |= _horizon("sh", fix(stability_horizon, delta=delta), A, errors)
    made |= _horizon("dh", drifts, A, errors)
    made["dh"]["horizon"] = far
    made |= dict(_blame(raw, raw_draws, n))
    cells = wilson(np.nan_to_num(A * n), n) if are_shares(columns) else percentile_interval(draws)
    made["matrix"] = _matrix(A, draws, cells, n) | {"delta": delta}
    return made


def _adaptation(A: np.ndarray, draws: np.ndarray) -> dict[str, Any]:
    """TAS; noise can only lower a ratio that is clipped at 1, so the upper ends are those before clipping."""
    whole, clipped, raw = adaptation_score(A), adaptation_score(draws), adaptation_score(draws, clipping="none")
    models = int(np.isfinite(whole.values).sum())
    made = {}
    for name, stat in (("tas", "mean"), ("tas_minimum", "minimum")):
        low, high = (percentile_interval(getattr(drawn, stat)) for drawn in (clipped, raw))
        ends = Interval(low.low, np.minimum(high.high, 1))
        made[name] = bounded(getattr(whole, stat), ends, models, "models")
    return made


def _horizon(name: str, compute: Callable[..., Horizon], A: np.ndarray, errors: np.ndarray) -> dict[str, Any]:
    """A horizon beyond noise: mean and minimum over models, and how often it would end in a world without drift."""
    beyond = fix(compute, error=errors, allowance=ALLOWANCE)
    whole, bounds = beyond(A), horizon_bounds(compute, A, errors)
    models, censored = int(whole.counted.sum()), int((whole.censored & whole.counted).sum())
    more = {"censored": censored, "false_alarm": number(false_alarm(beyond, A, errors))}
    return {
        name: bounded(whole.mean, bounds.mean, models, "models", **more),
        f"{name}_minimum": bounded(whole.minimum, bounds.minimum, models, "models"),
    }


def _matrix(A: np.ndarray, draws: np.ndarray, cells: Interval, n: np.ndarray) -> dict[str, Any]:
    """A(t, tau) and g(t, tau) with the ends of their intervals, and how many answers each cell rests on."""
    low, high = (listed(end) for end in cells)
    ttr_low, ttr_high = (listed(end) for end in percentile_interval(transfer_ratio(draws)))
    ends = {"low": low, "high": high, "ttr_low": ttr_low, "ttr_high": ttr_high}
    return {"accuracy": listed(A), "ttr": listed(transfer_ratio(A)), "n": n.tolist(), **ends}


def _blame(A: np.ndarray, draws: np.ndarray, n: np.ndarray) -> Iterator[tuple[str, dict[str, Any]]]:
    def loss(A: np.ndarray) -> np.ndarray:
        """By model and age: what a fresh model gets right and this one does not."""
        return ahead(np.broadcast_to(oracles(A), A.shape) - A)[..., :-1, 1:]

    def harder(A: np.ndarray) -> np.ndarray:
        fresh = np.diagonal(A, axis1=-2, axis2=-1)
        half = fresh.shape[-1] // 2
        return np.asarray(known_mean(fresh[..., :half]) - known_mean(fresh[..., -half:]))

    answers = int(np.triu(n, 1).sum())
    yield "fresh", measured(known_mean(np.diag(A)), known_mean(np.diagonal(draws, 0, 1, 2)), len(A), "models")
    yield "ageing", measured(_by_model(loss(A)), _by_model(loss(draws)), answers, "answers")
    yield "harder", measured(harder(A), harder(draws), int(np.diag(n).sum()), "answers")
    yield "first_own", measured(A[0, 0], draws[:, 0, 0], n[0, 0], "answers")
    yield "first_later", measured(known_mean(A[0, 1:]), known_mean(draws[:, 0, 1:]), n[0, 1:].sum(), "answers")
    by_age = [measured(known_mean(loss(A)[:, h]), known_mean(loss(draws)[:, :, h]), len(A) - 1 - h, "models")
              for h in range(len(A) - 1)]  # fmt: skip
    yield "loss_by_age", {"ages": by_age}


def _by_model(loss: np.ndarray) -> np.ndarray:
    """Mean over each model's future, then over models: none counts more because it is older."""
    return known_mean(known_mean(loss))


def known_mean(values: np.ndarray) -> np.ndarray:
    """Mean over the last axis of what is known; NaN where nothing is, as in a period whose target is constant."""
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    return np.asarray(np.where(known, values, 0).sum(axis=-1) / np.where(count, count, np.nan))


def log_decay(setting: Setting, probes: pd.DataFrame) -> dict[str, Any]:
    """The same for a log of predictions: one row, no oracle, so only its own course and DH."""
    kind = "Classification" if setting.classifies else "Regression"
    by_period = scored(probes, kind).groupby("probe", sort=False)["correct"]
    values = [by_period.get_group(name).to_numpy() for name in setting.names]
    random = setting.seed.child("bootstrap").numpy()
    row = np.array([part.mean() for part in values])
    draws = np.stack([resample_mean(part, DRAWS, random) for part in values], axis=1)
    row, draws = np.maximum(row, 0), np.maximum(draws, 0)
    n = [len(part) for part in values]
    errors = _one_row(np.array([standard_error(part, np.ones(len(part))) for part in values]))
    drifts = fix(drift_horizon, epsilon=EPSILON, threshold=THRESHOLD, horizon=len(row) - 1, direction="drop")
    return {
        "dh": _horizon("dh", fix(drifts, partial=True), _one_row(row), errors)["dh"],
        "first_own": measured(row[0], draws[:, 0], n[0], "answers"),
        "first_later": measured(known_mean(row[1:]), known_mean(draws[:, 1:]), sum(n[1:]), "answers"),
        "course": [measured(v, d, k, "answers") for v, d, k in zip(row, draws.T, n, strict=True)],
    }


def _one_row(row: np.ndarray) -> np.ndarray:
    """A matrix of which only the first row is known."""
    A = np.full((*row.shape, row.shape[-1]), np.nan)
    A[..., 0, :] = row
    return A


def listed(matrix: np.ndarray) -> list[Any]:
    """Nested lists with None for NaN."""
    return [[number(value) for value in row] for row in matrix]
