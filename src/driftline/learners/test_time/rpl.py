"""RPL: robust pseudo-labels with the generalized cross-entropy.

Rusak et al., "If your data distribution shifts, use self-learning", TMLR 2022. Loss: the generalized cross-entropy
(1 - p_y^q) / q of each sample's likeliest class y, of the same forward pass; it lies between cross-entropy (q to 0)
and 1 - p_y (q = 1). As in the RDumb study there is no teacher, and momentum, which the paper does without.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from driftline.learners.settings import NonNegative, Positive
from driftline.learners.test_time.base import NormAdapter
from driftline.registry import register


@register("method", "rpl")
@dataclass
class RPL(NormAdapter):
    """RPL: hard pseudo-labels with the generalized cross-entropy, which is robust to wrong labels."""

    lr: NonNegative = 5e-4
    q: Positive = 0.8  # exponent of the generalized cross-entropy: 0 is cross-entropy, 1 the mean absolute error

    def loss(self, outputs: Tensor) -> Tensor:
        p_y = outputs.softmax(dim=1).amax(dim=1)
        return ((1 - p_y**self.q) / self.q).mean()
