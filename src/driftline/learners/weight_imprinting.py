"""Weight imprinting: a cosine classifier initialized with class means and trained later.

Qi, Brown and Lowe, "Low-Shot Learning with Imprinted Weights", CVPR 2018, in a stream as in Wallingford et al., "In the
Wild: From ML Models to Pragmatic ML Systems", 2020 (NED): logits are s cos(w_i, f), with a trained scale that
starts at 4, the best of the paper's. A class is the mean of its features at length one; after 10,000 labels, a
number chosen by validation accuracy in the paper, training of weights and scale begins.

Neither says what happens to classes that appear later. Here every class stays a mean, set right by each of its labels,
until the first training that has it; from then on only training changes it. With every=0 there are none, and this is
nearest class mean by cosine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from driftline.learners.on_features import OnFeatures, cosines, unit
from driftline.learners.settings import Positive
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Samples


@register("method", "weight-imprinting")
@dataclass
class WeightImprinting(OnFeatures):
    """Weight imprinting: class means at first, then trained weights."""

    switch: int = 500  # labels before the first training; NED: 10,000 of 90,000
    scale: Positive = 4.0  # of cosines, before the first training

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.tuned = np.zeros(task.width, bool)  # the classes that are no longer their means
        self.train_in_lessons({"weight": torch.zeros(self.sums.shape), "scale": torch.tensor(self.scale)})

    def rest(self) -> int:
        return max(super().rest(), self.switch - self.heard)

    @property
    def apart(self) -> bool:
        return False

    def kept(self, features: np.ndarray) -> np.ndarray:
        return unit(features)

    def asked(self, features: np.ndarray) -> np.ndarray:
        return unit(features) * np.float32(self.head["scale"].item())

    def vectors(self, which: slice) -> np.ndarray:
        tuned = self.tuned[which][:, None]
        return unit(np.where(tuned, self.lessons_made("weight", which), self.means(which)))

    def compared(self, features: Tensor) -> Tensor:
        return cosines(features, self.head["weight"], self.head["scale"])

    def lesson(self) -> None:
        new = self.trained & ~self.tuned
        with torch.no_grad():
            self.head["weight"][torch.from_numpy(new)] = torch.from_numpy(self.means(slice(None))[new])
        self.tuned |= new
        super().lesson()
