"""Instance-aware batch norm (IABN), and networks that have it in place of batch norm from the start.

Gong et al., "NOTE: Robust Continual Test-time Adaptation Against Temporal Correlation", NeurIPS 2022. Each image is
normalized by the statistics of the batch, in training, or by the running ones, corrected by its own mean m and variance
v over n positions as far as these differ from the batch's by more than chance would explain:

    mean = M + shrink(m - M, k sqrt((V + eps) / n))
    variance = max(0, V + shrink(v - V, k (V + eps) sqrt(2 / (n - 1)))),   shrink(d, t) = sign(d) max(|d| - t, 0)

with M and V those of the batch, all variances unbiased, and k = 4. With one position there is no correction.
`iabn` makes any network with it, so that it is trained upstream as well, as the paper does:

    model: {name: iabn, network: resnet18}
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from driftline import models
from driftline.errors import UserError
from driftline.models.batch_norm import replace_batch_norm
from driftline.registry import register
from driftline.seeds import Seed
from driftline.types import JsonObject


class InstanceAwareBatchNorm(_BatchNorm):
    """Batch norm whose statistics follow those of each image, beyond a threshold of `shrinkage` standard errors."""

    def __init__(self, layer: _BatchNorm, shrinkage: float) -> None:
        super().__init__(layer.num_features, layer.eps, layer.momentum, affine=False)
        self.weight, self.bias, self.shrinkage = layer.weight, layer.bias, shrinkage
        self.running_mean, self.running_var = layer.running_mean, layer.running_var
        self.num_batches_tracked = layer.num_batches_tracked
        self.training = layer.training

    def forward(self, x: Tensor) -> Tensor:
        shape = [1, -1, *[1] * (x.ndim - 2)]
        mean, variance = (part.view(shape) for part in self._batch_statistics(x))
        if (n := x[0, 0].numel()) > 1:
            own_variance, own_mean = torch.var_mean(x, list(range(2, x.ndim)), keepdim=True)
            spread = variance + self.eps
            mean_bound = self.shrinkage * (spread / n).sqrt()
            variance_bound = self.shrinkage * math.sqrt(2 / (n - 1)) * spread
            mean = mean + soft_shrink(own_mean - mean, mean_bound)
            variance = (variance + soft_shrink(own_variance - variance, variance_bound)).relu()
        normalized = (x - mean) * (variance + self.eps).rsqrt()
        return normalized if self.weight is None else normalized * self.weight.view(shape) + self.bias.view(shape)

    def _batch_statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the batch, which move the running ones, in training; else the running ones.

        A layer whose running statistics were removed always has those of the batch.
        """
        if self.running_mean is not None and self.running_var is not None and not self.training:
            return self.running_mean, self.running_var
        variance, mean = torch.var_mean(x, [dim for dim in range(x.ndim) if dim != 1])
        if self.running_mean is not None and self.running_var is not None:
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)
            share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean.lerp_(mean.detach(), share)
            self.running_var.lerp_(variance.detach(), share)
        return mean, variance

    def _check_input_dim(self, x: Tensor) -> None:
        """Accept inputs of any number of dimensions."""


def soft_shrink(x: Tensor, bound: Tensor) -> Tensor:
    """Move numbers towards 0 by a bound, at most to 0.

    >>> soft_shrink(torch.tensor([-3.0, 0.5, 2.0]), torch.tensor(1.0))
    tensor([-2.,  0.,  1.])
    """
    return x - torch.minimum(torch.maximum(x, -bound), bound)


@register("model", "iabn")
def iabn(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    network: str = "resnet18",  # name of the network
    options: JsonObject | None = None,  # its options, such as weights; None: its defaults
    shrinkage: float = 4.0,  # standard errors by which an image may differ without effect
) -> nn.Module:
    """A network with instance-aware batch norm in place of batch norm, as NOTE trains it."""
    made = models.factory(network)(shape, outputs, seed, **(options or {}))
    if not isinstance(made, nn.Module) or not any(isinstance(layer, _BatchNorm) for layer in made.modules()):
        raise UserError(f"iabn replaces batch norm, and {network} has none: use a network that has, such as resnet18")
    replace_batch_norm(made, lambda layer: InstanceAwareBatchNorm(layer, shrinkage))
    return made
