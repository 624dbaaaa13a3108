"""Exemplar tuning: class means of normalized features plus trained residuals.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED):

    C_i = 1/n sum f(x) / |f(x)| + r_i,    logit_i = C_i . f(x)

with f(x) at its own length. The mean follows every label; the residual starts at zero and is trained by cross-entropy
on the schedule of fine-tuning. The printed probability leaves class i out of its denominator; this is a softmax.

Other similarities, which the paper only names: "cosine", s cos(C_i, f), with a trained scale as
in weight imprinting; "euclidean", -|C_i - f|^2, with f at its own length as in the linear form. The recorded distance
is minus the largest logit: for "euclidean", the smallest squared distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from driftline.device import to_device
from driftline.learners.prototypes.base import PrototypeLearner, Similarity, cosines
from driftline.learners.settings import Positive
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.features import unit_length
from driftline.types import Network, Samples


@register("method", "exemplar-tuning")
@dataclass
class ExemplarTuning(PrototypeLearner):
    """Exemplar tuning: class means updated with every label, with residuals trained at intervals."""

    similarity: Similarity = "linear"  # how features are compared with class vectors
    scale: Positive = 4.0  # scale of cosines before the first training

    transient = frozenset({"_means"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        residual = {"residual": torch.zeros(self.sums.shape)}
        scale = {"scale": torch.tensor(self.scale)} if self.similarity == "cosine" else {}
        self.add_head({**residual, **scale})

    @property
    def uses_distance(self) -> bool:
        return self.similarity == "euclidean"

    def support_features(self, features: np.ndarray) -> np.ndarray:
        return unit_length(features)

    def query_features(self, features: np.ndarray) -> np.ndarray:
        return (
            unit_length(features) * np.float32(self.head["scale"].item()) if self.similarity == "cosine" else features
        )

    def class_vectors(self, which: slice) -> np.ndarray:
        found = self.means(which) + self.head_rows("residual", which)
        return unit_length(found) if self.similarity == "cosine" else found

    def training_logits(self, features: Tensor) -> Tensor:
        vectors: Tensor = self._means + self.head["residual"]
        if self.similarity == "cosine":
            return cosines(features, vectors, self.head["scale"])
        if self.similarity == "linear":
            return features @ vectors.T
        return 2 * features @ vectors.T - vectors.square().sum(dim=1) - features.square().sum(dim=1, keepdim=True)

    def train_on_buffer(self) -> None:
        self._means = to_device(torch.tensor(self.means(slice(None))))  # no label comes during training
        super().train_on_buffer()
