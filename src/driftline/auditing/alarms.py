"""Replay of policies that retrain on an alarm: detectors watch the errors of the deployed model.

A detector first sees errors on held-out rows of the training periods. After an alarm in period s the policy trains on
the rows since s, again each period until it has as many periods as the first model, and watches on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftline.auditing.replay import Replay, start_training, training_rows
from driftline.auditing.table import AuditTable
from driftline.metrics.online_tas import online_tas
from driftline.models.sklearn_models import SklearnModel
from driftline.types import Answers, Samples

DETECTORS = ("adwin", "page-hinkley", "kswin", "ddm")  # of river
ERROR_RATE, ONLINE_TAS = "error-rate", "online-tas"
ALARM_Z = 3.0  # standard errors by which the error of a period exceeds that of the training periods
MIN_ROWS, MIN_RARE = 50, 20  # labels after an alarm from which a new model is trained
ENOUGH_FOR_ONE_HALF = 2_000  # rows from which one half is enough to test a model of the other
FED = {"kswin": 100}  # errors per period that a detector gets, evenly spread; KSWIN takes a millisecond for each
DEFAULT_FED = 500
TAS_WINDOW, TAS_THRESHOLD = 3, 0.95


class Watch(Protocol):
    """Watches the deployed model."""

    def start(self, errors: np.ndarray) -> None:
        """Begin anew for a new model, with errors on held-out rows of its training periods."""

    def fires(self, period: int, before: int, errors: np.ndarray) -> bool:
        """Take the errors of a period that are known before another one; return whether to raise an alarm."""
        ...


class ErrorRate:
    """Alarm if the mean error of a period is more than three standard errors above that of the training periods."""

    def start(self, errors: np.ndarray) -> None:
        self.mean, self.variance, self.n = float(errors.mean()), float(errors.var()), len(errors)

    def fires(self, period: int, before: int, errors: np.ndarray) -> bool:
        spread = np.sqrt(self.variance / self.n + max(self.variance, float(errors.var())) / len(errors))
        return bool(errors.mean() - self.mean > ALARM_Z * max(float(spread), 1e-12))


class RiverDetector:
    """A detector of river on the errors in order of time."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed

    def start(self, errors: np.ndarray) -> None:
        from driftline.learners.retraining.drift_detector import new_detector

        self.detector: Any = new_detector(self.name, self.seed)
        self._feed(errors)

    def fires(self, period: int, before: int, errors: np.ndarray) -> bool:
        return self._feed(errors)

    def _feed(self, errors: np.ndarray) -> bool:
        from driftline.learners.retraining.drift_detector import update

        limit = FED.get(self.name, DEFAULT_FED)
        chosen = np.unique(np.linspace(0, len(errors) - 1, min(len(errors), limit)).round().astype(int))
        fired = [update(self.detector, float(error)) for error in errors[chosen]]
        return any(fired)


class OnlineTAS:
    """Alarm if the deployed model has fallen behind challengers over the last three periods.

    A challenger is trained on one half of a period and the two periods before, and tested on the other half.
    """

    def __init__(self, table: AuditTable) -> None:
        self.table = table
        self.history: list[float] = []
        self.rows = 0

    def start(self, errors: np.ndarray) -> None:
        self.deployed: list[float] = []
        self.challenger: list[float] = []

    def fires(self, period: int, before: int, errors: np.ndarray) -> bool:
        arrivals = self.table.arrivals
        more = [arrivals.rows(k, before) for k in (period - 2, period - 1) if k >= 0]
        tested, challenger, trained = held_out_errors(self.table, arrivals.rows(period, before), more)
        self.rows += trained
        self.deployed.append(1 - float(errors[tested].mean()))
        self.challenger.append(1 - float(challenger.mean()))
        value = float(online_tas(self.deployed, self.challenger, window=TAS_WINDOW)[-1])
        self.history.append(value)
        return value < TAS_THRESHOLD


def watches(table: AuditTable, river: bool) -> dict[str, Callable[[], Watch]]:
    """Return the makers of all watches, by the name of their policy."""
    makers: dict[str, Callable[[], Watch]] = {
        f"on-{ERROR_RATE}": ErrorRate,
        f"on-{ONLINE_TAS}": lambda: OnlineTAS(table),
    }
    for name in DETECTORS if river else ():
        makers[f"on-{name}"] = lambda name=name: RiverDetector(name, table.seed.child("detector").value % 2**32)  # type: ignore[misc]
    return makers


@dataclass(frozen=True, eq=False)
class Start:
    """The first model of all policies, and its errors on held-out rows of its training periods."""

    model: SklearnModel
    errors: np.ndarray
    rows: int
    trained: int
    """Rows of all fits, those for the held-out errors included."""


def start_of_replay(table: AuditTable) -> Start:
    """Train the first model."""
    rows = training_rows(table, start_training(table))
    _, errors, trained = held_out_errors(table, rows)
    return Start(table.fit(rows), errors, len(rows), len(rows) + trained)


def replay_alarms(table: AuditTable, make: Callable[[], Watch], start: Start) -> Replay:
    """Run a policy that retrains on alarms through all periods."""
    watch, width = make(), table.deployed
    model, trained, sizes = start.model, start.trained, [start.rows]
    watch.start(start.errors)
    answers: dict[int, Answers] = {}
    deployed, alarms, since = [table.first_replayed], [], None
    for k in range(table.first_replayed, len(table.periods)):
        answers[k] = table.answer(model, table.periods[k])
        arrived = [j for j in table.arrivals.arriving(k + 1) if j in answers]
        if not arrived or k + 1 == len(table.periods):
            continue
        for j in arrived:
            if since is None and watch.fires(j, k + 1, known_errors(table, answers[j], j, k + 1)):
                since = j
                alarms.append(j)
        if since is None or not _enough(table, since, k + 1):
            continue
        rows = training_rows(table, table.arrivals.training(range(since, k + 1), k + 1))
        model, trained = table.fit(rows), trained + len(rows)
        sizes.append(len(rows))
        deployed.append(k + 1)
        if table.arrivals.newest(k + 1) + 1 - since >= width:
            _, errors, more = held_out_errors(table, rows)
            trained += more
            watch.start(errors)
            since = None
    history = tuple(watch.history) if isinstance(watch, OnlineTAS) else ()
    trained += watch.rows if isinstance(watch, OnlineTAS) else 0
    return Replay(answers, tuple(deployed), trained, tuple(alarms), history, float(np.mean(sizes)))


def row_errors(table: AuditTable, answers: Answers, rows: Samples) -> np.ndarray:
    """Return the error of each row: 0 or 1 for classes, between 0 and 1 for numbers."""
    return np.asarray(1 - table.frame.task.correct(answers.prediction, rows.y))


def known_errors(table: AuditTable, answers: Answers, period: int, before: int) -> np.ndarray:
    """Return the errors in a period whose labels are known before another one."""
    errors = row_errors(table, answers, table.periods[period])
    return np.asarray(errors[table.arrivals.is_known(period, before)])


def _enough(table: AuditTable, since: int, before: int) -> bool:
    y = np.concatenate([table.arrivals.rows(k, before).y for k in range(since, before)])
    if len(y) < MIN_ROWS:
        return False
    rare = np.bincount(y, minlength=2).min() if table.is_classification and table.frame.task.width == 2 else MIN_RARE
    return bool(rare >= MIN_RARE)


def held_out_errors(
    table: AuditTable, rows: Samples, more: Sequence[Samples] = ()
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the positions of tested rows, the errors there of models that did not see them, and the rows trained on.

    One half is tested by a model of the other half and of `more` rows. Of few rows, each half is tested.
    """
    half = np.arange(len(rows)) * 10 // max(len(rows), 1) % 2
    parts, trained = [], 0
    for k in (0, 1) if len(rows) < ENOUGH_FOR_ONE_HALF else (1,):
        inside, outside = np.flatnonzero(half == k), np.flatnonzero(half != k)
        if not len(inside) or not len(outside):
            return np.arange(len(rows)), np.zeros(len(rows)), 0
        training = Samples.concat([*more, rows[outside]])
        answers = table.answer(table.fit(training), rows[inside])
        parts.append((inside, row_errors(table, answers, rows[inside])))
        trained += len(training)
    tested = np.concatenate([inside for inside, _ in parts])
    order = np.argsort(tested)
    return tested[order], np.concatenate([errors for _, errors in parts])[order], trained
