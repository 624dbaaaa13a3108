"""SwAV: swapped prediction of cluster assignments between views.

Caron et al., "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments", NeurIPS 2020; in two
stages per training round as in Wild-Time, with its 32 prototypes and projection head (with batch norm) 32-32-128.

Departs from Caron et al. in that there are two views and no smaller crops, no queue of earlier features, and the
prototypes learn from the first update; from Wild-Time's code in that every period learns from features, where it
goes on with class logits after the first. The compute of head and prototypes is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from driftline.device import to_device
from driftline.learners.self_supervised.base import ContrastiveLearner
from driftline.registry import register
from driftline.training.cached_features import classifier_layer
from driftline.training.contrastive import PROJECTION_WIDTH, projection_head, swav_loss
from driftline.types import Network


@register("method", "swav")
@dataclass
class SwaV(ContrastiveLearner):
    """SwAV: swapped prediction of balanced cluster assignments, then training on labels."""

    temperature: float = 0.1  # temperature of the softmax
    prototypes: int = 32  # number of clusters
    epsilon: float = 0.05  # softness of assignments
    iterations: int = 3  # iterations of the Sinkhorn-Knopp algorithm

    def new_head(self, model: Network) -> nn.Module:
        head = projection_head(classifier_layer(model).in_features, self.seed.child("head"), batch_norm=True)
        start = torch.randn(self.prototypes, PROJECTION_WIDTH, generator=self.seed.child("prototypes").torch())
        head.register_parameter("prototypes", nn.Parameter(to_device(normalize(start, dim=1))))
        return head

    def pair_loss(self, a: Tensor, b: Tensor) -> Tensor:
        c = self.contrastive.head.get_parameter("prototypes")
        with torch.no_grad():  # the prototypes are normalized first
            c.copy_(normalize(c, dim=1))
        softness = {"temperature": self.temperature, "epsilon": self.epsilon}
        return swav_loss(a, b, c, iterations=self.iterations, **softness)
