"""Retraining on a schedule: never, at every k-th delivery of labels, or at every one.

The settings `window` and `max_samples` of `RetrainingPolicy` decide which labels a training uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.learners.retraining.base import RetrainingPolicy
from driftline.learners.settings import Count
from driftline.registry import register
from driftline.types import Inputs


@register("method", "train-once")
@dataclass
class TrainOnce(RetrainingPolicy):
    """No retraining after the first labels."""

    def should_retrain(self, x: Inputs, y: np.ndarray) -> bool:
        return False


@register("method", "retrain-every-k")
@dataclass
class RetrainEveryK(RetrainingPolicy):
    """Retraining at every k-th delivery of labels, on all of them unless `window` is set."""

    k: Count = 4  # label deliveries between retrainings

    def should_retrain(self, x: Inputs, y: np.ndarray) -> bool:
        return self.n_batches % self.k == 0


@register("method", "retrain-window")
@dataclass
class RetrainOnWindow(RetrainingPolicy):
    """Retraining at every delivery of labels, on the latest ones."""

    window: Count | None = 3

    def should_retrain(self, x: Inputs, y: np.ndarray) -> bool:
        return True


@register("method", "retrain-all")
@dataclass
class RetrainOnAll(RetrainingPolicy):
    """Retraining at every delivery of labels, on all so far."""

    def should_retrain(self, x: Inputs, y: np.ndarray) -> bool:
        return True
