"""Random augmentations of training images."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

MAX_ROTATION = 10.0  # degrees, either way
MAX_TRANSLATION = 2  # pixels, either way


def random_flip_rotate_translate(x: Tensor) -> Tensor:
    """Images (n, channels, height, width), each flipped by chance, turned and pushed a little; edges are stretched.

    Seq-to-Final's augmentation: flips, crops after padding by two pixels, rotations by up to ten degrees.
    """
    n, height, width = len(x), *x.shape[2:]
    return flip_rotate_translate(
        x,
        flip=torch.rand(n) < 0.5,
        rotation=(2 * torch.rand(n) - 1) * MAX_ROTATION,
        right=torch.randint(-MAX_TRANSLATION, MAX_TRANSLATION + 1, (n,)) * 2 / width,
        down=torch.randint(-MAX_TRANSLATION, MAX_TRANSLATION + 1, (n,)) * 2 / height,
    )


def flip_rotate_translate(x: Tensor, flip: Tensor, rotation: Tensor, right: Tensor, down: Tensor) -> Tensor:
    """Flip the chosen images, rotate by degrees, and translate by fractions of half the size."""
    angle, sign = rotation * (math.pi / 180), torch.where(flip, -1.0, 1.0)
    rows = [
        torch.stack([sign * angle.cos(), -angle.sin(), -right], dim=1),
        torch.stack([sign * angle.sin(), angle.cos(), -down], dim=1),
    ]
    grid = affine_grid(torch.stack(rows, dim=1), list(x.shape), align_corners=False).to(x.device)
    return grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)
