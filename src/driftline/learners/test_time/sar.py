"""SAR: sharpness-aware entropy minimization on reliable samples, with recovery from collapse.

Niu et al., "Towards Stable Test-Time Adaptation in Dynamic Wild World", ICLR 2023. Reliable samples have an entropy H <
E0 = `entropy_fraction` * ln(classes). With g the gradient of their mean H at the weights w, one norm over all of them,

    w' = w + radius * g / |g|

the batch is predicted again at w', and one optimizer step at w follows the gradient, at w', of the mean H of those
reliable samples whose H at w' is below E0 too. m is a running mean of that loss (m <- 0.9 m + 0.1 loss); when it falls
below `recovery_threshold`, weights and optimizer return to their first state and m is forgotten.

Departs from the authors' code in four ways. It leaves out the last layers by name (layer4 of a ResNet, the last three
of a ViT's twelve blocks and its final norm): here it is the last block of any network, of a ViT the final norm. After a
recovery its m returns to the old, low value, so that it recovers again in the following steps. Without a reliable
sample its step still happens, and momentum moves the weights: here there is none. It chooses the rate by the size of
the batch (2.5e-4 from 32 images on, half of that in proportion below, doubled for one image): here `lr` is the rate.
`recovery_threshold` is in nats: 0.2 is for 1,000 classes, and with 10 classes almost every step recovers; 0.05 is in
use there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from driftline.learners.settings import NonNegative, Positive
from driftline.learners.test_time.base import NormAdapter, entropy
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.normalization import affine_parameters_below_last_block
from driftline.training.optimizers import new_optimizer
from driftline.training.regularization import flatten, gradient, step_with_gradient
from driftline.types import Network, Samples

LOSS_DECAY = 0.9  # of the running mean of losses


@register("method", "sar")
@dataclass
class SAR(NormAdapter):
    """SAR: sharpness-aware entropy minimization on reliable samples, with recovery from collapse."""

    entropy_fraction: Positive = 0.4  # samples below this share of the largest entropy are reliable
    radius: NonNegative = 0.05  # length of the step to the weights at which the gradient is taken
    recovery_threshold: NonNegative = 0.2  # mean loss below which the weights return to the first ones

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.max_entropy = self.entropy_fraction * math.log(task.width)
        self.mean_loss: float | None = None
        self.recoveries = 0

    def adapted_parameters(self, layers: dict[str, nn.Module]) -> list[nn.Parameter]:
        """Return scales and shifts of all normalization layers but those of the last block."""
        return affine_parameters_below_last_block(layers)

    def adapt_batch(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.model(x)
        entropies = entropy(outputs)
        reliable = entropies.detach() < self.max_entropy
        if reliable.any():
            self._sharpness_aware_step(x, reliable, gradient(entropies[reliable].mean(), self._weights))
        return outputs.detach()

    def diagnostics(self) -> Mapping[str, float]:
        """Return the diagnostics of all methods of this family and the number of recoveries."""
        return {**super().diagnostics(), "recoveries": float(self.recoveries)}

    def _sharpness_aware_step(self, x: Tensor, reliable: Tensor, ascent: Tensor) -> None:
        here = flatten(self._weights).detach()
        self._set_weights(here + self.radius * ascent / (torch.linalg.vector_norm(ascent) + 1e-12))
        entropies = entropy(self.model(x))
        still_reliable = reliable & (entropies.detach() < self.max_entropy)
        loss = entropies[still_reliable].mean() if still_reliable.any() else None
        descent = None if loss is None else gradient(loss, self._weights)
        self._set_weights(here)
        if loss is not None and descent is not None:
            step_with_gradient(self.optim, self._weights, descent)
            self._recover_if_collapsed(loss.item())

    @torch.no_grad()
    def _set_weights(self, values: Tensor) -> None:
        parts = values.split([weight.numel() for weight in self._weights])
        for weight, part in zip(self._weights, parts, strict=True):
            weight.copy_(part.view_as(weight))

    def _recover_if_collapsed(self, loss: float) -> None:
        """Return to the first weights if the running mean of losses, with this one, is below the threshold."""
        before = loss if self.mean_loss is None else self.mean_loss
        self.mean_loss = LOSS_DECAY * before + (1 - LOSS_DECAY) * loss
        if self.mean_loss < self.recovery_threshold:
            self._set_weights(flatten(self._initial_weights))
            self.optim = new_optimizer(self.optimizer, self._weights, lr=self.lr, momentum=self.momentum)
            self.mean_loss = None
            self.recoveries += 1
