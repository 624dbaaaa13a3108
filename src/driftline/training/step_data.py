"""The labeled samples of one step of a sequence, split into training and validation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.types import TRAIN, Inputs, take_rows


@dataclass(frozen=True, eq=False)
class StepData:
    """The labeled samples of one step: for training and for validation."""

    train_x: Inputs
    train_y: np.ndarray
    valid_x: Inputs
    valid_y: np.ndarray

    @staticmethod
    def of(x: Inputs, y: np.ndarray, split: np.ndarray | None = None) -> StepData:
        """Divide the samples of a step as its benchmark did.

        Without a split, of each class the first four fifths train. Of each class at least one sample trains.
        """
        trains = np.zeros(len(y), bool) if split is None else split == TRAIN
        for label in np.unique(y):
            rows = np.flatnonzero(y == label)
            if split is None:
                trains[rows[: 4 * len(rows) // 5]] = True
            if not trains[rows].any():
                trains[rows[0]] = True
        train, valid = np.flatnonzero(trains), np.flatnonzero(~trains)
        valid = valid if len(valid) else train  # too few to set any aside
        return StepData(take_rows(x, train), y[train], take_rows(x, valid), y[valid])
