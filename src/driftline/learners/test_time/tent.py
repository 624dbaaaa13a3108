"""Tent: test-time entropy minimization.

Wang et al., "Tent: Fully Test-Time Adaptation by Entropy Minimization", ICLR 2021. Loss: the mean entropy of the
softmax over the batch. Settings are those for ImageNet; the authors use Adam with lr 1e-3 for CIFAR.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from driftline.learners.settings import NonNegative
from driftline.learners.test_time.base import NormAdapter, entropy
from driftline.registry import register


@register("method", "tent")
@dataclass
class Tent(NormAdapter):
    """Tent: entropy minimization on norm scales and shifts."""

    lr: NonNegative = 2.5e-4

    def loss(self, outputs: Tensor) -> Tensor:
        return entropy(outputs).mean()
