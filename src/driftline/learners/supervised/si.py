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

import torch
from torch import Tensor

from driftline.learners.settings import Positive
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.regularization import flatten, gradient, step_with_gradient, trainable_parameters
from driftline.types import Inputs, Network, Samples, Targets


@register("method", "si")
@dataclass
class SI(SupervisedLearner):
    """SI: fine-tuning with a quadratic penalty weighted by the path integral of past gradients."""

    penalty_weight: float = 0.1  # weight of the penalty
    damping: Positive = 1e-3  # avoids division by zero for weights that hardly moved

    requires = "network"

    cost_free = frozenset({"penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.anchor = self._theta()
        self.omega, self.path_integral = torch.zeros_like(self.anchor), torch.zeros_like(self.anchor)

    def update(self, x: Tensor, y: Tensor) -> None:
        weights = trainable_parameters(self.model)
        grad, before = gradient(self.batch_loss(x, y), weights), self._theta()
        penalty_grad = 2 * self.penalty_weight * self.omega * (before - self.anchor)  # the gradient of the penalty
        step_with_gradient(self.optim, weights, grad + penalty_grad)
        self.path_integral -= grad * (self._theta() - before)

    def learn(self, x: Inputs, y: Targets) -> None:
        self.train(x, y)
        theta = self._theta()
        self.omega = (self.omega + self.path_integral / ((theta - self.anchor).square() + self.damping)).clamp(min=0)
        self.anchor, self.path_integral = theta, torch.zeros_like(theta)

    @torch.no_grad()
    def _theta(self) -> Tensor:
        return flatten(trainable_parameters(self.model))
