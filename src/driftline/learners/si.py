"""SI: synaptic intelligence, a quadratic penalty weighted by each weight's contribution to past loss decrease.

Zenke, Poole and Ganguli, "Continual Learning Through Synaptic Intelligence", ICML 2017:

    loss(theta) + strength * sum_i omega_i (theta_i - anchor_i)^2
    at every step:      path_i <- path_i - g_i * (theta_i after - theta_i before)
    after each round:   omega_i <- max(0, omega_i + path_i / ((theta_i - anchor_i)^2 + damping)),
                        anchor <- theta,  path <- 0

g is the gradient of the loss alone, without the penalty, on the batch of the step. So `path` is each weight's share
of the loss drop along the trajectory (exactly so in the limit of small steps), and omega that share per squared
distance. The paper does not say what happens to negative shares, which noisy gradients bring; a negative omega would
push weights away without bound, so the sum is cut off at zero, as the authors' own code does.

Departs from Wild-Time's code, which accumulates `path` once per training round, from the gradient of the last step
and the way from the first weights to the last: that is no integral along the path. Strength and damping are
Wild-Time's for Yearbook.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from driftline.learners.settings import Positive
from driftline.learners.trained import Trained
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.penalties import descend_along, flat, gradient, trainable
from driftline.types import Samples


@register("method", "si")
@dataclass
class SI(Trained):
    """SI: fine-tuning with a quadratic penalty weighted by the path integral of past gradients."""

    strength: float = 0.1
    damping: Positive = 1e-3  # avoids division by zero for weights that hardly moved

    requires = "network"

    cost_free = frozenset({"strength"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.anchor = self._theta()
        self.omega, self.path = torch.zeros_like(self.anchor), torch.zeros_like(self.anchor)

    def update(self, x: Tensor, y: Tensor) -> None:
        weights = trainable(self.model)
        slope, before = gradient(self.batch_loss(x, y), weights), self._theta()
        back = 2 * self.strength * self.omega * (before - self.anchor)  # the gradient of the penalty
        descend_along(self.descent, weights, slope + back)
        self.path -= slope * (self._theta() - before)

    def learn(self, x: Any, y: Any) -> None:
        self.train(x, y)
        theta = self._theta()
        self.omega = (self.omega + self.path / ((theta - self.anchor).square() + self.damping)).clamp(min=0)
        self.anchor, self.path = theta, torch.zeros_like(theta)

    @torch.no_grad()
    def _theta(self) -> Tensor:
        return flat(trainable(self.model))
