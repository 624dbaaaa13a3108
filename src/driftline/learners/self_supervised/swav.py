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
from driftline.training.contrastive import PROJECTION_WIDTH, projection_head, swav_loss


@register("method", "swav")
@dataclass
class SwaV(ContrastiveLearner):
    """SwAV: swapped prediction of balanced cluster assignments, then training on labels."""

    temperature: float = 0.1  # temperature of the softmax
    prototypes: int = 32  # number of clusters
    epsilon: float = 0.05  # softness of assignments
    iterations: int = 3  # iterations of the Sinkhorn-Knopp algorithm

    cost_free = frozenset({"temperature"})

    def new_projection_head(self, features: int) -> nn.Module:
        head = projection_head(features, self.seed.child("head"), batch_norm=True)
        start = torch.randn(self.prototypes, PROJECTION_WIDTH, generator=self.seed.child("prototypes").torch())
        head.register_parameter("prototypes", nn.Parameter(to_device(normalize(start, dim=1))))
        return head

    def contrastive_loss(self, a: Tensor, b: Tensor) -> Tensor:
        c = self.projection_head.get_parameter("prototypes")
        with torch.no_grad():
            c.copy_(normalize(c, dim=1))
        how = {"temperature": self.temperature, "epsilon": self.epsilon}
        return swav_loss(self.projection_head(a), self.projection_head(b), c, iterations=self.iterations, **how)
