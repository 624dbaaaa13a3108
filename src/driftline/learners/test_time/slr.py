"""SLR: soft likelihood ratio.

Mummadi et al., "Test-Time Adaptation to Distribution Shift by Confidence Maximization and Input Transformation", 2021.
With logits h, p = softmax(h) and C classes:

    loss = sum_c p_t,c log(C p_t,c) + delta * mean over the batch of sum_c p_c (-h_c + log sum_{i != c} e^{h_i})
    p_t = kappa p_{t-1} + (1 - kappa) (mean over the batch of p),  p_0 uniform

The first term keeps answers spread over the classes; its gradient flows through the second part of p_t alone. The
second has a gradient that does not vanish for confident predictions. Scales and shifts of the last block stay, its
statistics do not. The RDumb study released no code for this method: p_0 is a guess, there is no input transformation,
and lr is constant, as the paper's cosine decay over epochs means nothing on an endless stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from driftline.device import to_device
from driftline.learners.settings import Fraction, NonNegative, OptimizerName
from driftline.learners.test_time.base import NormAdapter
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.normalization import affine_parameters_below_last_block
from driftline.types import Network, Samples


@register("method", "slr")
@dataclass
class SLR(NormAdapter):
    """SLR: soft likelihood ratio with a diversity term."""

    lr: NonNegative = 6e-4
    optimizer: OptimizerName = "adam"
    delta: NonNegative = 0.025  # weight of the likelihood ratio against diversity
    kappa: Fraction = 0.9  # decay of the moving average of probabilities

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.mean = to_device(torch.full((task.width,), 1 / task.width))

    def adapted_parameters(self, layers: dict[str, nn.Module]) -> list[nn.Parameter]:
        """Return scales and shifts of all normalization layers but those of the last block."""
        return affine_parameters_below_last_block(layers)

    def loss(self, outputs: Tensor) -> Tensor:
        mean = self.kappa * self.mean + (1 - self.kappa) * outputs.softmax(dim=1).mean(dim=0)
        self.mean = mean.detach()
        p = mean.clamp(min=1e-12)  # a class that is never answered any more has no logarithm
        diversity = (p * p.log()).sum() + math.log(len(mean))
        return diversity + self.delta * likelihood_ratio(outputs).mean()


def likelihood_ratio(outputs: Tensor) -> Tensor:
    """Return sum_c p_c (-h_c + log sum_{i != c} e^{h_i}) of each sample: minus the expected log odds.

    Of the likeliest class the others are summed up one by one: 1 - p would round to 0.
    """
    p, top = outputs.softmax(dim=1), outputs.argmax(dim=1, keepdim=True)
    others = outputs.logsumexp(dim=1, keepdim=True) + torch.log1p(-p.scatter(1, top, 0.0))
    beside_top = outputs.scatter(1, top, -math.inf).logsumexp(dim=1, keepdim=True)
    return (p * (others.scatter(1, top, beside_top) - outputs)).sum(dim=1)
