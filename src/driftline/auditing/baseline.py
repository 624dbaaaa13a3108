"""The trivial baseline of an audit: a constant answer, the most frequent class or the mean of the labels so far.

Ratios and horizons compare a model with itself or with its successors, so a model that knows nothing scores best in
them. The baseline shows this: it is scored on the same rows as the models and the policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftline.auditing.decay import measure_decay, measure_log_decay, with_scores
from driftline.auditing.estimate import DRAWS, Estimate
from driftline.auditing.table import AuditTable
from driftline.metrics.confidence import bootstrap_means


@dataclass(frozen=True)
class Baseline:
    """The decay of the baseline, and how much better the model is."""

    protocol: str
    above: Estimate
    """Quality of models minus that of the baseline, in the models' own periods."""
    first_own: Estimate
    first_later: Estimate
    dh: Estimate
    fresh: Estimate | None = None
    """This and the following: None if predictions are logged."""
    tas: Estimate | None = None
    sh: Estimate | None = None


def constant(table: AuditTable, labels: Sequence[np.ndarray]) -> float:
    """Return the most frequent class of these labels, or their mean."""
    y = np.concatenate(labels)
    return int(np.bincount(y).argmax()) if table.is_classification else float(y.mean())


def constant_answers(table: AuditTable) -> list[np.ndarray]:
    """Return the answers by period of the constant of all labels revealed so far."""
    labels = [table.rows(k).y for k in range(len(table.periods))]
    constants = [constant(table, table.labels_before(k)) for k in range(len(labels))]
    return [np.full(len(y), answer) for y, answer in zip(labels, constants, strict=True)]


def measure_baseline(table: AuditTable, probes: pd.DataFrame, delta: float) -> Baseline:
    """Return the scores of the baseline on the rows of these probes."""
    constants = {step: constant(table, [table.periods.revealed[step].y]) for step in probes["step"].unique()}
    predicted = probes["step"].map(constants).to_numpy()
    correct = table.frame.task.correct(predicted, probes["truth"].to_numpy())
    trivial = probes.assign(prediction=predicted, correct=correct)
    above = _above(table, probes, trivial)
    kind = "most frequent class" if table.is_classification else "mean"
    if table.is_log:
        log = measure_log_decay(table, trivial)
        protocol = f"the {kind} of the first period, on the same rows"
        return Baseline(protocol, above, log.first_own, log.first_later, log.dh)
    decay = measure_decay(table, trivial, delta)
    protocol = f"the {kind} of the training rows of each model, on the same rows"
    return Baseline(
        protocol, above, decay.first_own, decay.first_later, decay.dh, decay.fresh, decay.tas, decay.sh
    )  # fmt: skip


def _above(table: AuditTable, probes: pd.DataFrame, trivial: pd.DataFrame) -> Estimate:
    """Return the mean over periods of how much better a model is than the baseline, paired by row."""
    more = with_scores(table, probes)["correct"] - with_scores(table, trivial)["correct"]
    own_period = probes["step"].map(dict(enumerate(table.names)))
    own = np.full(len(probes), True) if table.is_log else probes["probe"] == own_period
    parts = [part.to_numpy() for _, part in more[own].groupby(probes["probe"][own]) if np.isfinite(part).all()]
    random = table.seed.child("baseline").numpy()
    draws = [bootstrap_means(part, DRAWS, random) for part in parts] or [np.full(DRAWS, np.nan)]
    value = np.mean([part.mean() for part in parts]) if parts else np.nan
    return Estimate.from_draws(value, np.mean(draws, axis=0), sum(map(len, parts)), "answers")
