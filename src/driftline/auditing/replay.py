"""Replay of schedules: each period is predicted by a model of the periods that a policy trains on.

Every policy starts from the same model of the first `deployed` periods. Policies that train on the same periods share
the model, so a training is an independent task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from driftline.auditing.recalibration import LIMITS, fit_binary, recalibrate_binary
from driftline.auditing.table import AuditTable, draw
from driftline.types import Answers, Samples

Training = tuple[int, ...]
"""The periods whose rows train a model."""
NEVER, RECALIBRATE = "never", "recalibrate"
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
    """Return by policy and predicted period the periods that the model is trained on.

    Labels of a period are known `delay` periods late; a policy trains on known labels only.
    """
    first, last, width = table.first_replayed, len(table.periods), table.deployed
    start = tuple(range(width))

    def window(known: int) -> Training:
        return tuple(range(max(0, known - width + 1), known + 1))

    plans: dict[str, dict[int, Training]] = {
        NEVER: dict.fromkeys(range(first, last), start),
        f"window-{width}": {k: window(k - 1 - table.delay) for k in range(first, last)},
        "all-history": {k: tuple(range(k - table.delay)) for k in range(first, last)},
    }
    for every in INTERVALS:
        if every < last - first:
            due = {k: first + (k - first) // every * every for k in range(first, last)}
            plans[f"every-{every}"] = {k: window(due[k] - 1 - table.delay) for k in due}
            plans[f"every-{every}-all"] = {k: tuple(range(due[k] - table.delay)) for k in due}
    return plans


def same_phase(table: AuditTable, cycle: int) -> dict[int, Training]:
    """Return the schedule that trains on the same phase of earlier cycles; before there is one, on the start."""
    start = tuple(range(table.deployed))
    plan = {}
    for k in range(table.first_replayed, len(table.periods)):
        alike = tuple(j for j in range(k - table.delay) if (k - j) % cycle == 0)
        plan[k] = alike or start
    return plan


def training_rows(table: AuditTable, periods: Sequence[int]) -> Samples:
    """Return the rows of these periods, at most as many as the limit."""
    rows = Samples.concat([table.periods[k] for k in periods])
    return draw(rows, table.limits.training_rows, table.seed.child("training", *periods))


def train_and_answer(table: AuditTable, training: Training, predicted: Sequence[int]) -> dict[int, Answers]:
    """Train a model on the rows of some periods and return its answers in others."""
    model = table.fit(training_rows(table, training))
    return {k: table.answer(model, table.periods[k]) for k in predicted}


def schedule_replay(table: AuditTable, plan: dict[int, Training], fitted: dict[Training, dict[int, Answers]]) -> Replay:
    """Return the replay of a schedule from the answers of its models."""
    answers = {k: fitted[training][k] for k, training in plan.items()}
    deployed: list[int] = []
    for k, training in plan.items():
        if not deployed or training != plan[k - 1]:
            deployed.append(k)
    sizes = [min(table.limits.training_rows, sum(len(table.periods[j]) for j in plan[k])) for k in deployed]
    return Replay(answers, tuple(deployed), sum(sizes), rows_per_training=float(np.mean(sizes)))


def recalibrated_replay(table: AuditTable, never: Replay) -> Replay:
    """Return the replay of the first model whose two-class probabilities are recalibrated on the latest periods."""
    answers = {}
    for k, given in never.answers.items():
        known = [j for j in never.answers if j <= k - 1 - table.delay][-table.deployed :]
        assert given.scores is not None
        if not known:
            answers[k] = given
            continue
        logits = np.concatenate([_logit(never.answers[j]) for j in known])
        y = np.concatenate([table.periods[j].y for j in known]).astype(float)
        a, b = fit_binary(logits, y, np.zeros(len(y), int))
        positive = recalibrate_binary(_logit(given), a[0], b[0])
        answers[k] = Answers((positive > 0.5).astype(int), np.stack([1 - positive, positive], axis=1))
    return Replay(answers, never.trainings, never.rows, rows_per_training=never.rows_per_training)


def _logit(answers: Answers) -> np.ndarray:
    assert answers.scores is not None
    p = np.clip(answers.scores, *LIMITS)
    return np.asarray(np.log(p[:, 1] / p[:, 0]))
