"""Copies: rows with equal features and targets. One must not train a half of a period whose other half tests another.

Rows of a discrete table may be alike by chance. They count as copies only if those that have the same features nearly
always have the same target.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from driftline.auditing.frame import Frame

MIN_SHARE = 0.01  # of rows that repeat an earlier one
MAX_OTHER_TARGET = 0.01  # share of repeated features with another target


def copy_keys(frame: Frame) -> np.ndarray | None:
    """Return for each audited row a key that rows with the same features share; None if there are no copies."""
    if not frame.features:
        return None
    inputs = frame.inputs.iloc[frame.samples.x]
    keys = pd.util.hash_pandas_object(inputs, index=False).to_numpy()
    rows = pd.DataFrame({"features": keys, "target": frame.samples.y})
    repeated, copied = int(rows["features"].duplicated().sum()), int(rows.duplicated().sum())
    if copied <= MIN_SHARE * len(rows) or repeated - copied > MAX_OTHER_TARGET * repeated:
        return None
    return keys


def first_copies(keys: np.ndarray) -> np.ndarray:
    """Return for each row the position of the first one with its key.

    >>> first_copies(np.array([7, 5, 7, 5])).tolist()
    [0, 1, 0, 1]
    """
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])
