"""AugMix: random mixtures of chains of small changes of an image, as MEMO uses it.

Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", ICLR 2020. An image
is cropped and flipped at random (`training.augmentations`). Three copies of it each go through one to three operations,
drawn with replacement; a Dirichlet(1, 1, 1) draw mixes the copies, and a Beta(1, 1) draw mixes this with the cropped
image. The operations at level 1 are those of MEMO's code: with u uniform in [0.1, 1],

    autocontrast, equalize     each channel by itself
    rotate                     by int(3 u) degrees, either way
    solarize                   pixels from 256 - int(25.6 u) on are inverted
    shear-x, shear-y           by 0.03 u, either way, about the first pixel
    translate-x, translate-y   by int(0.1 u side / 3) pixels, either way
    posterize                  the 4 highest bits

Warps are bilinear. Departs from that code, which fills uncovered pixels with red of half strength: here they are gray.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from driftline.training.augmentations import AUGMENTATIONS

CHAINS, MAX_DEPTH = 3, 3
GRAY = 128

Operation = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""A random change of an image of bytes (height, width, channels)."""


def augmix(image: np.ndarray, crop: str, rng: np.random.Generator) -> np.ndarray:
    """Return an augmented copy of an image of bytes, as numbers in [0, 255].

    `crop`: the name of the crop and flip that comes first (`training.augmentations`).
    """
    cropped = np.ascontiguousarray(AUGMENTATIONS[crop](image, image.shape[0], image.shape[1], rng))
    weights, share = rng.dirichlet(np.ones(CHAINS)), rng.beta(1, 1)
    mixture = np.zeros(cropped.shape)
    for weight in weights:
        changed = cropped
        for _ in range(rng.integers(1, MAX_DEPTH + 1)):
            changed = OPERATIONS[rng.integers(len(OPERATIONS))](changed, rng)
        mixture += weight * changed
    mixed: np.ndarray = share * cropped + (1 - share) * mixture
    return mixed.astype(np.float32)


def autocontrast(image: np.ndarray) -> np.ndarray:
    """Stretch each channel to the whole range."""
    low, high = image.min(axis=(0, 1)), image.max(axis=(0, 1))
    scale = np.where(high > low, 255 / np.maximum(high.astype(float) - low, 1), 1.0)
    stretched: np.ndarray = image * scale - np.where(high > low, low, 0) * scale
    return stretched.astype(np.uint8)


def equalize(image: np.ndarray) -> np.ndarray:
    """Equalize the histogram of each channel."""
    return np.stack([_equalized(image[..., k]) for k in range(image.shape[2])], axis=-1)


def _equalized(channel: np.ndarray) -> np.ndarray:
    counts = np.bincount(channel.ravel(), minlength=256)
    step = (channel.size - counts[channel.max()]) // 255
    if not step:
        return channel
    before = np.cumsum(counts) - counts
    table = np.minimum((before + step // 2) // step, 255).astype(np.uint8)
    return np.take(table, channel)


def solarize(image: np.ndarray, threshold: int) -> np.ndarray:
    """Invert the pixels from a threshold on."""
    return np.where(image < threshold, image, 255 - image)


def posterize(image: np.ndarray, bits: int) -> np.ndarray:
    """Keep the highest bits."""
    kept: np.ndarray = image & np.uint8(256 - 2 ** (8 - bits))
    return kept


def rotate(image: np.ndarray, degrees: float) -> np.ndarray:
    """Rotate counterclockwise about the center."""
    angle, (height, width) = math.radians(degrees), image.shape[:2]
    cos, sin, right, down = math.cos(angle), math.sin(angle), width / 2, height / 2
    return warp(image, (cos, -sin, right - cos * right + sin * down), (sin, cos, down - sin * right - cos * down))


def warp(image: np.ndarray, across: tuple[float, float, float], along: tuple[float, float, float]) -> np.ndarray:
    """Return the image in which position (x, y) shows what was at (a x + b y + c, d x + e y + f), gray beyond it.

    Positions count from the image's corner; the center of the first pixel is at (0.5, 0.5).
    """
    height, width = image.shape[:2]
    y, x = np.mgrid[:height, :width] + 0.5
    u = across[0] * x + across[1] * y + across[2]
    v = along[0] * x + along[1] * y + along[2]
    inside = (u >= 0) & (u < width) & (v >= 0) & (v < height)
    left, top = np.floor(u - 0.5), np.floor(v - 0.5)
    right_share, low_share = (u - 0.5 - left)[..., None], (v - 0.5 - top)[..., None]
    columns = [np.clip(left + k, 0, width - 1).astype(int) for k in (0, 1)]
    rows = [np.clip(top + k, 0, height - 1).astype(int) for k in (0, 1)]
    upper, lower = (image[row, columns[0]] * (1 - right_share) + image[row, columns[1]] * right_share for row in rows)
    mixed = upper * (1 - low_share) + lower * low_share
    return np.where(inside[..., None], mixed, GRAY).astype(np.uint8)


def _level(rng: np.random.Generator) -> float:
    return rng.uniform(0.1, 1)


def _sign(rng: np.random.Generator) -> int:
    return 1 if rng.random() < 0.5 else -1


def _shift(side: int, rng: np.random.Generator) -> int:
    return int(_level(rng) * side / 30) * _sign(rng)


OPERATIONS: tuple[Operation, ...] = (
    lambda image, rng: autocontrast(image),
    lambda image, rng: equalize(image),
    lambda image, rng: rotate(image, int(3 * _level(rng)) * _sign(rng)),
    lambda image, rng: solarize(image, 256 - int(25.6 * _level(rng))),
    lambda image, rng: warp(image, (1, 0.03 * _level(rng) * _sign(rng), 0), (0, 1, 0)),
    lambda image, rng: warp(image, (1, 0, 0), (0.03 * _level(rng) * _sign(rng), 1, 0)),
    lambda image, rng: warp(image, (1, 0, _shift(image.shape[1], rng)), (0, 1, 0)),
    lambda image, rng: warp(image, (1, 0, 0), (0, 1, _shift(image.shape[0], rng))),
    lambda image, rng: posterize(image, 4),
)
