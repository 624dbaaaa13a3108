"""Relation or inputs: does the period help to predict the target at equal inputs?

A model that cannot extrapolate ages even if only the inputs move. So one flexible model of all periods is fitted with
and without the period as an input. If the period helps on held-out rows, the relation itself changed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from driftline.auditing.matrix import Halves
from driftline.auditing.recalibration import log_loss
from driftline.auditing.table import AuditTable, draw
from driftline.models.tabular import EncodedEstimator
from driftline.types import Samples

MAX_ROWS = 20_000  # of each fit
PERIOD = "driftline period"  # name of the additional column


def period_help(table: AuditTable, halves: Halves) -> float:
    """Return z of how much the period as an input lowers the loss on held-out rows, at equal inputs."""
    gains = np.concatenate([_gain(table, halves, half) for half in (0, 1)])
    spread = gains.std()
    return float(gains.mean() / spread * np.sqrt(len(gains))) if spread > 0 else 0.0


def _gain(table: AuditTable, halves: Halves, half: int) -> np.ndarray:
    limit = max(1, MAX_ROWS // len(halves.names))
    seed = table.seed.child("cause", half)
    parts = [draw(rows, limit, seed.child(k)) for k, rows in enumerate(halves.training[half])]
    training, period = Samples.concat(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    rows, tested = halves.tested[half], halves.periods[half]
    without, with_period = (_losses(table, training, rows, times) for times in ((None, None), (period, tested)))
    return np.asarray(without - with_period)


def _losses(
    table: AuditTable, training: Samples, rows: Samples, periods: tuple[np.ndarray | None, np.ndarray | None]
) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    settings = {"max_iter": 60, "max_leaf_nodes": 15, "l2_regularization": 1.0, "early_stopping": False}
    inputs = [_inputs(table, part, times) for part, times in zip((training, rows), periods, strict=True)]
    if not table.is_classification:
        model = EncodedEstimator(HistGradientBoostingRegressor(**settings, random_state=0)).fit(inputs[0], training.y)
        return np.asarray((model.predict(inputs[1]) - rows.y) ** 2)
    model = EncodedEstimator(HistGradientBoostingClassifier(**settings, random_state=0)).fit(inputs[0], training.y)
    probability = np.zeros((len(rows), table.frame.task.width))
    probability[:, model.classes_] = model.predict_proba(inputs[1])
    return log_loss(probability, rows.y)


def _inputs(table: AuditTable, rows: Samples, period: np.ndarray | None) -> pd.DataFrame:
    frame: pd.DataFrame = table.frame.inputs.iloc[rows.x]
    return frame if period is None else frame.assign(**{PERIOD: period.astype(float)})
