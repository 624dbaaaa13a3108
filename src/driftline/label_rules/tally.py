"""What label rules did in a step, as numbers for the record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Tally:
    """Counts of labels in a step, and the accuracy of answers on these labels alone."""

    asked: int = 0
    arrived: int = 0
    wrong: int = 0
    correct: float = 0.0
    weight: float = 0.0
    weighted_correct: float = 0.0
    is_weighted: bool = False

    def add(self, correct: np.ndarray, wrong: int, propensity: np.ndarray | None) -> None:
        """Count labels that were asked for: whether answers agree with them, and how many are not the true ones."""
        self.asked, self.wrong = self.asked + len(correct), self.wrong + wrong
        self.correct += float(correct.sum())
        if propensity is not None:
            self.is_weighted = True
            self.weight += float((1 / propensity).sum())
            self.weighted_correct += float((correct / propensity).sum())

    def diagnostics(self) -> dict[str, float]:
        """Return the counts by name, and the accuracy on the labels, also weighted by inverse propensity (Hájek)."""
        counts = {"labels asked": self.asked, "labels arrived": self.arrived, "labels wrong": self.wrong}
        found = {name: float(count) for name, count in counts.items()}
        if self.asked:
            found["accuracy on labels"] = self.correct / self.asked
        if self.is_weighted:
            found |= {"weight of labels": self.weight, "weighted accuracy": self.weighted_correct / self.weight}
        return found
