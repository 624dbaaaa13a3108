"""Augmentations of CoTTA, RoTTA and ROID: color jitter, affine warp, and for the first two blur and noise.

CoTTA's recipe (Wang et al., CVPR 2022) for images (n, channels, height, width) with values in [0, 1]: brightness,
contrast, saturation, hue and gamma in random order; rotation by up to 15 degrees, translation by up to an eighth of the
image and zoom by up to a tenth, with edges stretched; Gaussian blur; a random horizontal flip; noise. One draw serves
the whole batch, except for the noise. Translations are not rounded to whole pixels.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor
from torch.nn.functional import conv2d, grid_sample

from driftline.training.contrastive_views import to_grayscale

BLUR_RADIUS = 2  # of the blur, in pixels


def cotta_augment(x: Tensor, random: Generator) -> Tensor:
    """Return one augmented copy of each image."""
    x = _jitter_and_warp(x, random, "border")
    x = gaussian_blur_5x5(x, _between(random, 0.001, 0.5))
    x = x.flip(3) if _between(random, 0, 1) < 0.5 else x
    return (x + 0.005 * torch.randn(x.shape, generator=random).to(x.device)).clamp(0, 1)


def roid_augment(x: Tensor, random: Generator) -> Tensor:
    """Return one augmented copy of each image as ROID makes it: without blur and noise, and edges are reflected."""
    x = _jitter_and_warp(x, random, "reflection")[..., BLUR_RADIUS:-BLUR_RADIUS, BLUR_RADIUS:-BLUR_RADIUS]
    return (x.flip(3) if _between(random, 0, 1) < 0.5 else x).clamp(0, 1)


def _jitter_and_warp(x: Tensor, random: Generator, edges: str) -> Tensor:
    """Return images with other colors, rotated, translated and zoomed, with a margin of `BLUR_RADIUS` pixels."""
    factors = {
        "brightness": _between(random, 0.6, 1.4),
        "contrast": _between(random, 0.7, 1.3),
        "saturation": _between(random, 0.5, 1.5),
        "hue": _between(random, -0.06, 0.06),
        "gamma": _between(random, 0.7, 1.3),
    }
    x = x.clamp(0, 1)
    for k in torch.randperm(len(factors), generator=random).tolist():
        name = list(factors)[k]
        x = adjust_color(x, name, factors[name])
    return affine_warp(
        x,
        rotation=_between(random, -15, 15),
        right=_between(random, -1 / 8, 1 / 8),
        down=_between(random, -1 / 8, 1 / 8),
        zoom=_between(random, 0.9, 1.1),
        edges=edges,
    )


def _between(random: Generator, low: float, high: float) -> float:
    return low + (high - low) * float(torch.rand((), generator=random))


def adjust_color(x: Tensor, property_name: str, amount: float) -> Tensor:
    """Change brightness, contrast, saturation, hue or gamma; gray images have no saturation and no hue."""
    if property_name == "brightness":
        return (x * amount).clamp(0, 1)
    if property_name == "contrast":
        mean = to_grayscale(x).mean(dim=(1, 2, 3), keepdim=True)
        return (mean + (x - mean) * amount).clamp(0, 1)
    if property_name == "gamma":
        return x**amount
    if x.shape[1] != 3:
        return x
    return (
        rotate_hue(x, amount)
        if property_name == "hue"
        else (to_grayscale(x) + (x - to_grayscale(x)) * amount).clamp(0, 1)
    )


def rotate_hue(x: Tensor, share: float) -> Tensor:
    """Rotate the hue by a fraction of the color circle; brightest channel and saturation stay.

    >>> rotate_hue(torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1), 1 / 3).flatten().round().tolist()
    [0.0, 1.0, 0.0]
    """
    top, spread = x.amax(dim=1), x.amax(dim=1) - x.amin(dim=1)
    red, green, blue = x.unbind(dim=1)
    some = torch.where(spread > 0, spread, 1.0)
    hue = torch.where(
        top == red,
        (green - blue) / some,
        torch.where(top == green, (blue - red) / some + 2, (red - green) / some + 4),
    )
    places = [(start + hue + 6 * share) % 6 for start in (5, 3, 1)]
    return torch.stack([top - spread * torch.minimum(k, 4 - k).clamp(0, 1) for k in places], dim=1)


def affine_warp(x: Tensor, *, rotation: float, right: float, down: float, zoom: float, edges: str = "border") -> Tensor:
    """Rotate by degrees, translate by fractions of the size and zoom; adds a margin of `BLUR_RADIUS` pixels.

    `edges`: what is beyond them, "border" (the pixels at the edge) or "reflection".
    """
    height, width = x.shape[2:]
    angle = math.radians(rotation)
    down_, right_ = torch.meshgrid(_offsets_from_center(height), _offsets_from_center(width), indexing="ij")
    u, v = right_ - right * width, down_ - down * height
    across, along = (
        (math.cos(angle) * u + math.sin(angle) * v) / zoom,
        (math.cos(angle) * v - math.sin(angle) * u) / zoom,
    )
    grid = torch.stack([across * 2 / width, along * 2 / height], dim=-1).to(x.device).expand(len(x), -1, -1, -1)
    return grid_sample(x, grid, mode="bilinear", padding_mode=edges, align_corners=False)


def _offsets_from_center(size: int) -> Tensor:
    """Return the offsets of pixels and margin from the center."""
    return torch.arange(-BLUR_RADIUS, size + BLUR_RADIUS) - (size - 1) / 2


def gaussian_blur_5x5(x: Tensor, sigma: float) -> Tensor:
    """Blur with a Gaussian of 5 x 5 pixels, which removes the margin of `BLUR_RADIUS` pixels."""
    weights = torch.exp(-(torch.arange(-BLUR_RADIUS, BLUR_RADIUS + 1).double() ** 2) / (2 * sigma**2))
    kernel = (weights / weights.sum()).float().to(x.device).view(1, 1, 1, -1).expand(x.shape[1], -1, -1, -1)
    x = conv2d(x, kernel, groups=x.shape[1])
    return conv2d(x, kernel.transpose(2, 3), groups=x.shape[1])
