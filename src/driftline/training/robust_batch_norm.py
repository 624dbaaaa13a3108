"""Batch norm whose running statistics normalize in training mode too, as RoTTA has it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm


class RobustBatchNorm(_BatchNorm):
    """Batch norm by running statistics, which move towards those of a batch before they normalize it in training mode.

    mean <- (1 - rate) mean + rate (the batch's mean), and likewise the biased variance; gradients flow through the
    batch's part.
    """

    def __init__(self, layer: _BatchNorm, rate: float) -> None:
        super().__init__(layer.num_features, layer.eps, affine=False)
        self.weight, self.bias, self.rate = layer.weight, layer.bias, rate
        self.running_mean, self.running_var = layer.running_mean, layer.running_var
        self.training = False

    def forward(self, x: Tensor) -> Tensor:
        assert self.running_mean is not None
        assert self.running_var is not None
        if not self.training:
            return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        dims = [dim for dim in range(x.ndim) if dim != 1]
        batch_variance, batch_mean = torch.var_mean(x, dims, correction=0)
        mean = self.running_mean.lerp(batch_mean, self.rate)
        variance = self.running_var.lerp(batch_variance, self.rate)
        self.running_mean.copy_(mean.detach())
        self.running_var.copy_(variance.detach())
        shape = [1, -1, *[1] * (x.ndim - 2)]
        normalized = (x - mean.view(shape)) / (variance.view(shape) + self.eps).sqrt()
        return normalized if self.weight is None else normalized * self.weight.view(shape) + self.bias.view(shape)

    def _check_input_dim(self, x: Tensor) -> None:
        """Accept inputs of any number of dimensions."""
