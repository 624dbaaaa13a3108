"""Symmetric noise: with the same probability, a label is shown as any other class."""

from dataclasses import dataclass

import numpy as np

from driftline.label_rules.base import LabelRule, Rate
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task


@register("label-rule", "symmetric-noise")
@dataclass
class SymmetricNoise(LabelRule):
    """Wrong labels: each other class is shown with probability rate / (classes - 1)."""

    rate: Rate = 0.2  # share of wrong labels

    def prepare(self, task: Task, seed: Seed) -> None:
        super().prepare(task, seed)
        self.need_classes()

    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        n, draws = len(self.need_classes()), self.draws(positions)
        wrong = draws < self.rate
        other = np.minimum(draws / max(self.rate, 1e-300) * (n - 1), n - 2).astype(int)
        return np.where(wrong & (n > 1), other + (other >= y), y).astype(y.dtype)
