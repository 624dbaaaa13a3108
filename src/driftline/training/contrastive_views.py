"""Random views of a batch for contrastive learning.

Images (n, channels, height, width) with values in [0, 1] are cropped and resized, flipped, jittered, and, if in
color, sometimes turned gray; this is SimCLR's recipe for small images (Chen et al. 2020, section B.9: no blur). Rows
of a table have features hidden and noise added. Each function takes the random choices as arguments, one per sample,
so that a batch is the same as its samples one by one; `Views` draws them.

Departs from torchvision in ways that do not matter for small images: a crop that would be wider or higher than the
image is cut to it instead of drawn again, jitter comes in one order (brightness, contrast, saturation), and hue stays.
Departs from Wild-Time's SimCLR, which also flips images vertically (here: `vertical_flip`) and rotates by 90 degrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import affine_grid, conv2d, grid_sample, pad

from driftline.errors import UserError
from driftline.training.torch_model import torch_model

LUMA_WEIGHTS = (0.299, 0.587, 0.114)  # how bright red, green and blue look (ITU-R BT.601)


@dataclass(frozen=True)
class SimCLRAugmentation:
    """The augmentations that make two views of an input: probabilities and strengths.

    >>> images = torch.rand(4, 1, 8, 8, generator=torch.manual_seed(0))
    >>> one, other = SimCLRAugmentation().two_views(images, torch.Generator().manual_seed(1))
    >>> one.shape, torch.equal(one, other)
    (torch.Size([4, 1, 8, 8]), False)
    """

    min_crop_area: float = 0.08  # minimum share of an image that a crop keeps
    flip: float = 0.5  # probability of left for right
    vertical_flip: float = 0.0  # probability of upside down
    jitter: float = 0.8  # probability of color jitter
    strength: float = 0.4  # by how much at most: factors from 1 - strength to 1 + strength
    grayscale: float = 0.2  # probability of grayscale
    blur: float = 0.0  # probability of Gaussian blur
    mask: float = 0.2  # rows: share of features hidden
    noise: float = 0.1  # rows: deviation of the noise, in deviations of the feature

    def two_views(self, x: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Return two independent views of each sample."""
        view = self.augment_images if x.ndim == 4 else self.augment_rows
        return view(x, generator), view(x, generator)

    def augment_images(self, x: Tensor, generator: Generator) -> Tensor:
        """Return one view of each image."""
        n = len(x)

        def happens(probability: float) -> Tensor:
            return torch.rand(n, generator=generator) < probability

        def between(low: float, high: float) -> Tensor:
            return low + (high - low) * torch.rand(n, generator=generator)

        share, ratio = between(self.min_crop_area, 1), between(math.log(3 / 4), math.log(4 / 3)).exp()
        width, height = (share * ratio).sqrt().clamp(max=1), (share / ratio).sqrt().clamp(max=1)
        right, down = between(-1, 1), between(-1, 1)
        x = crop_resize_flip(x, width, height, right, down, happens(self.flip), happens(self.vertical_flip))
        factors = [between(1 - self.strength, 1 + self.strength) for _ in range(3)]
        x = where_sample(happens(self.jitter), color_jitter(x, *factors), x)
        if x.shape[1] == 3:
            x = where_sample(happens(self.grayscale), to_grayscale(x).expand_as(x), x)
        return where_sample(happens(self.blur), gaussian_blur(x, between(0.1, 2.0)), x) if self.blur else x

    def augment_rows(self, x: Tensor, generator: Generator) -> Tensor:
        """Return one view of each row: masked features take the batch mean, noise scales with the batch deviation."""
        hidden = (torch.rand(x.shape, generator=generator) < self.mask).to(x.device)
        noise = self.noise * torch.randn(x.shape, generator=generator).to(x.device) * x.std(0, correction=0)
        return torch.where(hidden, x.mean(0).expand_as(x), x + noise)


def crop_resize_flip(
    x: Tensor, width: Tensor, height: Tensor, right: Tensor, down: Tensor, flip: Tensor, over: Tensor
) -> Tensor:
    """Crop a part of each image, and resize it to full size by bilinear interpolation.

    `width` and `height` are shares of the image; `right` and `down` place the part, from -1 (left, top) to 1.
    """
    affine = torch.zeros(len(x), 2, 3)
    affine[:, 0, 0], affine[:, 0, 2] = torch.where(flip, -width, width), right * (1 - width)
    affine[:, 1, 1], affine[:, 1, 2] = torch.where(over, -height, height), down * (1 - height)
    grid = affine_grid(affine, list(x.shape), align_corners=False).to(x.device)
    return grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


def color_jitter(x: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor) -> Tensor:
    """Multiply values by brightness, distances from the mean gray by contrast, from a pixel's gray by saturation."""
    b, c, s = (factor.to(x.device)[:, None, None, None] for factor in (brightness, contrast, saturation))
    x = (x * b).clamp(0, 1)
    mean = to_grayscale(x).mean(dim=(1, 2, 3), keepdim=True)
    x = (mean + (x - mean) * c).clamp(0, 1)
    return (to_grayscale(x) + (x - to_grayscale(x)) * s).clamp(0, 1) if x.shape[1] == 3 else x


def to_grayscale(x: Tensor) -> Tensor:
    """Return one channel: the luma of three channels, and the mean of any other number."""
    weights = torch.tensor(LUMA_WEIGHTS) if x.shape[1] == 3 else torch.full((x.shape[1],), 1 / x.shape[1])
    return (x * weights.to(x.device)[:, None, None]).sum(1, keepdim=True)


def gaussian_blur(x: Tensor, sigma: Tensor) -> Tensor:
    """Blur each image with its own standard deviation in pixels; the window is a tenth of the image, at least 3."""
    n, channels, height, width = x.shape
    reach = max(1, min(height, width) // 20)
    away = torch.arange(-reach, reach + 1)
    weights = torch.exp(-(away**2) / (2 * sigma[:, None] ** 2))
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(channels, 0)[:, None, None].to(x.device)
    x = pad(x.reshape(1, n * channels, height, width), (reach, reach, reach, reach), mode="replicate")
    x = conv2d(conv2d(x, weights, groups=n * channels), weights.transpose(2, 3), groups=n * channels)
    return x.reshape(n, channels, height, width)


def where_sample(which: Tensor, these: Tensor, those: Tensor) -> Tensor:
    """Return `these` images where `which` is true, `those` elsewhere."""
    return torch.where(which.to(these.device)[:, None, None, None], these, those)


def check_numeric_inputs(model: nn.Module) -> None:
    """Refuse a network for texts: views are made of images or rows of numbers."""
    if torch_model(model).reads_text:
        raise UserError("this method compares views of images or rows of numbers, and these inputs are texts")
