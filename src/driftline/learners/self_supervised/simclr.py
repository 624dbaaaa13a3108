"""SimCLR: contrastive learning with in-batch negatives.

Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations", ICML 2020; in two stages per
round as in Wild-Time: 2700 updates without labels then 300 with them (Eval-Stream: 270 then 30), projection head
32-32-128 for the Yearbook network (features-features-128 for any other).

Departs from Wild-Time's code, which never switches its network back after the first period, so that later periods
contrast class logits: here every period contrasts features. NT-Xent needs negatives, and mini-batches are drawn with
replacement: a sample drawn twice is its own negative, which matters for rounds not much larger than a mini-batch.
The views are those of `driftline.training.contrastive_views`. The projection head's compute is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from driftline.learners.self_supervised.base import ContrastiveLearner
from driftline.registry import register
from driftline.training.cached_features import classifier_layer
from driftline.training.contrastive import nt_xent, projection_head
from driftline.types import Network


@register("method", "simclr")
@dataclass
class SimCLR(ContrastiveLearner):
    """SimCLR: contrastive features with in-batch negatives, then training on labels."""

    temperature: float = 0.5  # temperature of the softmax

    def new_head(self, model: Network) -> nn.Module:
        return projection_head(classifier_layer(model).in_features, self.seed.child("head"))

    def pair_loss(self, a: Tensor, b: Tensor) -> Tensor:
        return nt_xent(a, b, temperature=self.temperature)
