"""Changes of color: brightness, contrast and saturation. Each pixel changes on its own, so lookup tables suffice."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit


def brightness(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Add dV to the value V of HSV, the largest channel: all channels grow by V' / V, and black becomes gray."""
    out = np.empty_like(images)
    _by_largest(images.reshape(-1, 3), out.reshape(-1, 3), _brightened(parameters["dV"]))
    return out


@lru_cache(maxsize=64)
def _brightened(more: float) -> np.ndarray:
    """Return the new value of a channel, by the largest channel of its pixel (rows) and its own (columns)."""
    largest, own = np.arange(256)[:, None] / 255, np.arange(256) / 255
    value = np.clip(largest + more, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.where(largest > 0, (largest - own) / largest, 0)
    return np.asarray((np.clip(value * (1 - saturation), 0, 1) * 255).astype(np.uint8))


@cached_njit()
def _by_largest(pixels: np.ndarray, out: np.ndarray, table: np.ndarray) -> None:
    for i in range(len(pixels)):
        red, green, blue = pixels[i, 0], pixels[i, 1], pixels[i, 2]
        row = table[max(red, green, blue)]
        out[i, 0], out[i, 1], out[i, 2] = row[red], row[green], row[blue]


def contrast(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Draw every channel towards its mean over the image."""
    out = np.empty_like(images)
    size = images.shape[1] * images.shape[2]
    _towards_mean(images.reshape(len(images), size, 3), out.reshape(len(images), size, 3), parameters["factor"])
    return out


@cached_njit()
def _towards_mean(images: np.ndarray, out: np.ndarray, factor: float) -> None:
    table = np.empty((3, 256), np.uint8)
    for n in range(len(images)):
        clean, target = images[n], out[n]
        sums = np.zeros(3, np.uint64)
        for i in range(len(clean)):
            for channel in range(3):
                sums[channel] += np.uint64(clean[i, channel])
        for channel in range(3):
            mean = sums[channel] / (255.0 * len(clean))
            for value in range(256):
                table[channel, value] = np.uint8(min(max((value / 255.0 - mean) * factor + mean, 0.0), 1.0) * 255.0)
        red, green, blue = table[0], table[1], table[2]
        for i in range(len(clean)):
            target[i, 0], target[i, 1], target[i, 2] = red[clean[i, 0]], green[clean[i, 1]], blue[clean[i, 2]]


def saturate(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Make the saturation S of HSV into factor * S + offset. Gray has hue 0: an offset turns it reddish."""
    out = np.empty_like(images)
    _saturate(images.reshape(-1, 3), out.reshape(-1, 3), parameters["factor"], parameters["offset"])
    return out


@cached_njit()
def _saturate(pixels: np.ndarray, out: np.ndarray, factor: float, offset: float) -> None:
    for i in range(len(pixels)):
        largest = max(pixels[i, 0], pixels[i, 1], pixels[i, 2]) / 255.0
        spread = largest - min(pixels[i, 0], pixels[i, 1], pixels[i, 2]) / 255.0
        before = spread / largest if largest > 0 else 0.0
        after = min(max(factor * before + offset, 0.0), 1.0)
        for channel in range(3):
            own = pixels[i, channel] / 255.0
            if spread > 0:
                value = largest - (largest - own) * (after / before)
            else:
                value = largest if channel == 0 else largest * (1 - after)
            out[i, channel] = np.uint8(min(max(value, 0.0), 1.0) * 255.0)
