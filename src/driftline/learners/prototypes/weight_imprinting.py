"""Weight imprinting: a cosine classifier initialized with class means and trained later.

Qi, Brown and Lowe, "Low-Shot Learning with Imprinted Weights", CVPR 2018, in a stream as in Wallingford et al., "In the
Wild: From ML Models to Pragmatic ML Systems", 2020 (NED): logits are s cos(w_i, f), with a trained scale that
starts at 4, the best of the paper's. A class is the mean of its features at length one; after 10,000 labels, a
number chosen by validation accuracy in the paper, training of weights and scale begins.

Neither says what happens to classes that appear later. Here every class stays a mean, updated by each of its labels,
until the first training that has it; from then on only training changes it. With train_every=0 it never trains,
and this is nearest class mean by cosine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from driftline.device import to_device
from driftline.learners.prototypes.base import PrototypeLearner, cosines
from driftline.learners.settings import Positive
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.features import unit_length
from driftline.types import Network, Samples


@register("method", "weight-imprinting")
@dataclass
class WeightImprinting(PrototypeLearner):
    """Weight imprinting: class means at first, then trained weights."""

    imprint_only_labels: int = 500  # labels before the first training; NED: 10,000 of 90,000
    scale: Positive = 4.0  # scale of cosines before the first training

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.tuned_classes = np.zeros(task.width, bool)  # the classes that are no longer their means
        self.add_head({"weight": torch.zeros(self.sums.shape), "scale": torch.tensor(self.scale)})

    def labels_until_training(self) -> int:
        return max(super().labels_until_training(), self.imprint_only_labels - self.labels.n_labels)

    @property
    def uses_distance(self) -> bool:
        return False

    def support_features(self, features: np.ndarray) -> np.ndarray:
        return unit_length(features)

    def query_features(self, features: np.ndarray) -> np.ndarray:
        return unit_length(features) * np.float32(self.head["scale"].item())

    def class_vectors(self, which: slice) -> np.ndarray:
        tuned = self.tuned_classes[which][:, None]
        return unit_length(np.where(tuned, self.head_rows("weight", which), self.means(which)))

    def training_logits(self, features: Tensor) -> Tensor:
        return cosines(features, self.head["weight"], self.head["scale"])

    def train_on_buffer(self) -> None:
        new = self.known_classes & ~self.tuned_classes
        with torch.no_grad():
            self.head["weight"][torch.from_numpy(new)] = to_device(torch.from_numpy(self.means(slice(None))[new]))
        self.tuned_classes |= new
        super().train_on_buffer()
