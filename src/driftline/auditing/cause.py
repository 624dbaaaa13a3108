"""Relation or inputs: does the period help to predict the target at equal inputs?

A model that cannot extrapolate ages even if only the inputs move. So one flexible model of all periods is fitted with
and without the period as an input. If the period helps on held-out rows, the relation itself changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from driftline.auditing.matrix import Halves
from driftline.auditing.recalibration import log_loss
from driftline.auditing.table import AuditTable, draw
from driftline.models.tabular import EncodedEstimator
from driftline.types import Samples

MAX_ROWS = 20_000  # of each fit
PERIOD, PHASE = "driftline period", "driftline phase"  # names of the additional columns


def period_help(table: AuditTable, halves: Halves, cycle: int | None = None) -> float:
    """Return z of how much the period as an input lowers the loss on held-out rows, at equal inputs.

    `cycle`: of this many periods, whose phase is an input too.
    """
    gains = np.concatenate([_gain(table, halves, half, cycle) for half in (0, 1)])
    spread = gains.std()
    return float(gains.mean() / spread * np.sqrt(len(gains))) if spread > 0 else 0.0


def _gain(table: AuditTable, halves: Halves, half: int, cycle: int | None) -> np.ndarray:
    limit = max(1, MAX_ROWS // len(halves.names))
    seed = table.seed.child("cause", half)
    parts = [draw(rows, limit, seed.child(k)) for k, rows in enumerate(halves.training[half])]
    training, period = Samples.concat(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    rows, tested = halves.tested[half], halves.periods[half]
    inputs = [table.frame.inputs.iloc[part.x] for part in (training, rows)]
    timed = [_with_time(part, times, cycle) for part, times in zip(inputs, (period, tested), strict=True)]
    return np.asarray(_losses(table, training, rows, inputs) - _losses(table, training, rows, timed))


def _losses(table: AuditTable, training: Samples, rows: Samples, inputs: Sequence[pd.DataFrame]) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    settings = {"max_iter": 60, "max_leaf_nodes": 15, "l2_regularization": 1.0, "early_stopping": False}
    if not table.is_classification:
        model = EncodedEstimator(HistGradientBoostingRegressor(**settings, random_state=0)).fit(inputs[0], training.y)
        return np.asarray((model.predict(inputs[1]) - rows.y) ** 2)
    model = EncodedEstimator(HistGradientBoostingClassifier(**settings, random_state=0)).fit(inputs[0], training.y)
    probability = np.zeros((len(rows), table.frame.task.width))
    probability[:, model.classes_] = model.predict_proba(inputs[1])
    return log_loss(probability, rows.y)


def _with_time(inputs: pd.DataFrame, period: np.ndarray, cycle: int | None) -> pd.DataFrame:
    timed = inputs.assign(**{PERIOD: period.astype(float)})
    return timed if cycle is None else timed.assign(**{PHASE: (period % cycle).astype(float)})
