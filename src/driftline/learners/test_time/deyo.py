"""DeYO: entropy minimization on samples whose answer depends on the shape of what they show.

Lee et al., "Entropy is not Enough for Test-Time Adaptation: From the Perspective of Disentangled Factors", ICLR 2024.
For each sample with an entropy H < `entropy_fraction` * ln(classes), the network also predicts the image with its 4 x 4
patches shuffled, each image in an order of its own. With c the likeliest class, p_c its probability and p'_c that with
shuffled patches,

    drop = p_c - p'_c
    loss = mean over samples with drop > min_drop of (exp(0.4 ln(classes) - H) + exp(drop)) H

with the weights in brackets held fixed. A sample whose answer survives the shuffling was answered by its colors or
texture. Without a selected sample there is no update.

The authors take a `min_drop` of 0.3 for ResNet-50 with batch norm on one corruption at a time and 0.2 in their other
settings for ImageNet, and 2.5e-4 from 32 images on (in proportion below) as the rate. Departs from their code in that
the last block of any network is left out, not layers with certain names, and that a network with batch norm needs two
sure samples for an update: the shuffled images have the statistics of their own batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import interpolate

from driftline.errors import UserError
from driftline.learners.settings import Positive
from driftline.learners.test_time.base import NormAdapter, entropy
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.fit import optimizer_step
from driftline.training.normalization import affine_parameters_below_last_block
from driftline.types import Network, Samples

PATCHES = 4  # along each side
CENTER = 0.4  # share of the largest entropy at which a sample's first weight is 1


@register("method", "deyo")
@dataclass
class DeYO(NormAdapter):
    """DeYO: entropy minimization on samples whose answer changes when the patches of the image are shuffled."""

    entropy_fraction: Positive = 0.5  # samples below this share of the largest entropy are reliable
    min_drop: float = 0.2  # drop of the answer's probability, with shuffled patches, above which a sample is selected

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.max_entropy = self.entropy_fraction * math.log(task.width)
        self.steps = 0

    def adapted_parameters(self, layers: dict[str, nn.Module]) -> list[nn.Parameter]:
        """Return scales and shifts of all normalization layers but those of the last block."""
        return affine_parameters_below_last_block(layers)

    def adapt_batch(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            raise UserError("deyo shuffles the patches of images, and these inputs are not images")
        outputs: Tensor = self.model(x)
        sure = (entropy(outputs.detach()) < self.max_entropy).nonzero()[:, 0]
        if len(sure) >= self._min_inputs:
            with torch.no_grad():
                shuffled = self.model(shuffle_patches(x[sure], self.seed.child("patches", self.steps).torch()))
            if (loss := shape_loss(outputs[sure], shuffled, self.min_drop)) is not None:
                optimizer_step(self.optim, loss)
        self.steps += 1
        return outputs.detach()


def shape_loss(outputs: Tensor, shuffled: Tensor, min_drop: float) -> Tensor | None:
    """Return the weighted mean entropy of samples by how their answer drops with shuffled patches; None without any."""
    top = outputs.argmax(dim=1, keepdim=True)
    drop = (outputs.detach().softmax(dim=1) - shuffled.softmax(dim=1)).gather(1, top)[:, 0]
    selected = drop > min_drop
    if not selected.any():
        return None
    entropies, drop = entropy(outputs)[selected], drop[selected]
    weights = (CENTER * math.log(outputs.shape[1]) - entropies.detach()).exp() + drop.exp()
    return (weights * entropies).mean()


def shuffle_patches(x: Tensor, random: Generator) -> Tensor:
    """Return images with their 4 x 4 patches in another order, each image in its own.

    Sides that are not a multiple of 4 are resized to one, and back.
    """
    n, channels, *size = x.shape
    height, width = (max(1, side // PATCHES) for side in size)
    resized = _resize(x, [PATCHES * height, PATCHES * width])
    grid = resized.reshape(n, channels, PATCHES, height, PATCHES, width).permute(0, 2, 4, 1, 3, 5)
    order = torch.rand((n, PATCHES * PATCHES), generator=random).argsort(dim=1).to(x.device)
    patches = grid.reshape(n, PATCHES * PATCHES, channels, height, width)[torch.arange(n)[:, None].to(x.device), order]
    mixed = patches.reshape(n, PATCHES, PATCHES, channels, height, width).permute(0, 3, 1, 4, 2, 5)
    return _resize(mixed.reshape(resized.shape), size)


def _resize(x: Tensor, size: list[int]) -> Tensor:
    return x if list(x.shape[2:]) == size else interpolate(x, size, mode="bilinear", align_corners=False)
