"""A worked accuracy matrix, and every metric of such a matrix."""

from __future__ import annotations

import numpy as np

from driftline.metrics.horizons import drift_horizon, stability_horizon
from driftline.metrics.temporal import (
    adaptation_score,
    in_distribution,
    out_of_distribution,
    transfer_ratio,
    worst_future,
)

nan = np.nan
WORKED = np.array([[0.80, 0.72, 0.45, 0.60], [nan, 0.75, 0.66, 0.63], [nan, nan, 0.60, 0.80], [nan, nan, nan, 0.70]])
CLIPPINGS = ("ratio", "none", "elementwise", "transfer", "raw-transfer")
ALL = {
    "ttr": transfer_ratio,
    "sh": lambda A: stability_horizon(A, 0.8),
    "sh-skip": lambda A: stability_horizon(A, 0.8, gaps="skip"),
    "dh": lambda A: drift_horizon(A, 0.04, 0.15, 2),
    "dh-partial": lambda A: drift_horizon(A, 0.04, 0.15, 2, partial=True),
    "tas": adaptation_score,
    "tas-partial": lambda A: adaptation_score(A, 2, "transfer", partial=True),
    "id": in_distribution,
    "ood": out_of_distribution,
    "worst": worst_future,
}
