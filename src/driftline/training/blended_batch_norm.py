"""Batch norm by a blend of the running statistics and those of the batch at hand.

Schneider et al., "Improving robustness against common corruptions by covariate shift adaptation", NeurIPS 2020: with a
prior strength N, a statistic is N / (N + 1) the running one and 1 / (N + 1) the batch's.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm


class BlendedBatchNorm(_BatchNorm):
    """Batch norm by blended statistics, which are held fixed in the gradient; the running ones stay as they are.

    The variance is the unbiased one. One value per channel has none; then the running statistics alone count.
    """

    def __init__(self, layer: _BatchNorm, prior_strength: float) -> None:
        super().__init__(layer.num_features, layer.eps, affine=False)
        self.weight, self.bias, self.share = layer.weight, layer.bias, 1 / (prior_strength + 1)
        self.running_mean, self.running_var = layer.running_mean, layer.running_var
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        assert self.running_mean is not None
        assert self.running_var is not None
        mean, variance = self.running_mean, self.running_var
        if x.numel() > x.shape[1]:
            with torch.no_grad():
                batch_variance, batch_mean = torch.var_mean(x, [dim for dim in range(x.ndim) if dim != 1])
                mean, variance = mean.lerp(batch_mean, self.share), variance.lerp(batch_variance, self.share)
        return batch_norm(x, mean, variance, self.weight, self.bias, False, 0.0, self.eps)

    def _check_input_dim(self, x: Tensor) -> None:
        """Accept inputs of any number of dimensions."""
