"""Replay of schedules: each period is predicted by a model of the periods that a policy trains on.

Every policy starts from the same model of the first `deployed` periods. Policies that train on the same periods share
the model, so a training is an independent task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from driftline.auditing.arrivals import Training
from driftline.auditing.recalibration import fit_line, fit_recalibration
from driftline.auditing.table import AuditTable, draw
from driftline.types import Answers, Samples

NEVER, RECALIBRATE, ALL_HISTORY = "never", "recalibrate", "all-history"
INTERVALS = (2, 4, 8)  # of retraining, in periods


@dataclass(frozen=True, eq=False)
class Replay:
    """The answers by period under one policy, and what it did."""

    answers: dict[int, Answers]
    trainings: tuple[int, ...]
    """The periods before which a new model was deployed; the first one is the start."""
    rows: int
    """Rows trained on, in all trainings."""
    alarms: tuple[int, ...] = ()
    """The periods whose labels raised an alarm."""
    online_tas: tuple[float, ...] = ()
    rows_per_training: float = field(default=0.0)


def schedules(table: AuditTable) -> dict[str, dict[int, Training]]:
    """Return by policy and predicted period what the model is trained on: never a label before it is known."""
    first, last, width, arrivals = table.first_replayed, len(table.periods), table.deployed, table.arrivals

    def history(k: int) -> Training:
        return arrivals.training(range(k), k)

    plans: dict[str, dict[int, Training]] = {
        NEVER: dict.fromkeys(range(first, last), start_training(table)),
        f"window-{width}": {k: arrivals.window(width, k) for k in range(first, last)},
        ALL_HISTORY: {k: history(k) for k in range(first, last)},
    }
    for every in INTERVALS:
        if every < last - first:
            due = {k: first + (k - first) // every * every for k in range(first, last)}
            plans[f"every-{every}"] = {k: arrivals.window(width, due[k]) for k in due}
            plans[f"every-{every}-all"] = {k: history(due[k]) for k in due}
    return plans


def start_training(table: AuditTable) -> Training:
    """Return what the first model of all policies is trained on."""
    return table.arrivals.training(range(table.deployed), table.first_replayed)


def same_phase(table: AuditTable, cycle: int) -> dict[int, Training]:
    """Return the schedule that trains on the same phase of earlier cycles; before there is one, on the start."""
    plan = {}
    for k in range(table.first_replayed, len(table.periods)):
        alike = table.arrivals.training([j for j in range(k) if (k - j) % cycle == 0], k)
        plan[k] = alike if alike.periods else start_training(table)
    return plan


def training_rows(table: AuditTable, training: Training) -> Samples:
    """Return the rows of a training, at most as many as the limit."""
    rows = Samples.concat([table.arrivals.rows(k, training.before) for k in training.periods])
    return draw(rows, table.limits.training_rows, table.seed.child("training", *training.periods))


def train_and_answer(table: AuditTable, training: Training, predicted: Sequence[int]) -> dict[int, Answers]:
    """Train a model and return its answers in some periods."""
    model = table.fit(training_rows(table, training))
    return {k: table.answer(model, table.periods[k]) for k in predicted}


def schedule_replay(table: AuditTable, plan: dict[int, Training], fitted: dict[Training, dict[int, Answers]]) -> Replay:
    """Return the replay of a schedule from the answers of its models."""
    answers = {k: fitted[training][k] for k, training in plan.items()}
    deployed: list[int] = []
    for k, training in plan.items():
        if not deployed or training != plan[k - 1]:
            deployed.append(k)
    sizes = [min(table.limits.training_rows, table.arrivals.count(plan[k])) for k in deployed]
    return Replay(answers, tuple(deployed), sum(sizes), rows_per_training=float(np.mean(sizes)))


def recalibrated_replay(table: AuditTable, never: Replay) -> Replay:
    """Return the replay of the first model whose answers are recalibrated on the latest periods."""
    answers, arrivals = {}, table.arrivals
    for k, given in never.answers.items():
        if arrivals.newest(k) not in never.answers:
            answers[k] = given
            continue
        known = [j for j in arrivals.window(table.deployed, k).periods if j in never.answers]
        y = np.concatenate([arrivals.rows(j, k).y for j in known])
        past = Answers.concat([_chosen(never.answers[j], arrivals.is_known(j, k)) for j in known])
        answers[k] = _recalibrated(given, past, y)
    return Replay(answers, never.trainings, never.rows, rows_per_training=never.rows_per_training)


def _chosen(answers: Answers, rows: np.ndarray) -> Answers:
    return Answers(answers.prediction[rows], None if answers.scores is None else answers.scores[rows])


def _recalibrated(given: Answers, past: Answers, y: np.ndarray) -> Answers:
    """Return answers after the best recalibration of past ones: of probabilities, or of numbers."""
    if given.scores is None:
        slope, intercept = fit_line(past.prediction, y)
        return Answers(intercept + slope * given.prediction)
    assert past.scores is not None
    scores = fit_recalibration(past.scores, y).apply(given.scores)
    return Answers(scores.argmax(axis=1), scores)
