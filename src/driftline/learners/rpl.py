"""RPL: robust pseudo-labelling.

Rusak et al., "If your data distribution shifts, use self-learning", TMLR 2022. Loss: the generalised cross-entropy
(1 - p_y^q) / q of each sample's likeliest class y, of the same forward pass; it lies between cross-entropy (q to 0)
and 1 - p_y (q = 1). As in the RDumb study there is no teacher, and momentum, which the paper does without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from driftline.learners.limits import POSITIVE, Limit
from driftline.learners.norm_adapt import Sharpened
from driftline.registry import register


@register("method", "rpl")
@dataclass
class RPL(Sharpened):
    """Take the likeliest class for the truth, with a loss that forgives mistakes."""

    lr: float = 5e-4
    q: float = 0.8

    limits: ClassVar[Mapping[str, Limit]] = {**Sharpened.limits, "q": POSITIVE}

    def loss(self, outputs: Tensor) -> Tensor:
        p_y = outputs.softmax(dim=1).amax(dim=1)
        return ((1 - p_y**self.q) / self.q).mean()
