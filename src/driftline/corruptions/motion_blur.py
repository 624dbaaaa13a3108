"""Motion blur along a line, as ImageMagick computes it.

Its Gaussian has one side only: a pixel is blurred with what lies ahead of it, never with what lies behind. The edge is
continued by its own pixels.
"""

from __future__ import annotations

import math

import cv2
import numpy as np

from driftline.corruptions.convolution import pad_to_four, sum_taps
from driftline.corruptions.per_image_rng import random_uniform, stream_words
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit


def motion_blur(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Blur every image in a direction of its own, from -45 to 45 degrees."""
    weights = tap_weights(parameters["radius"], parameters["sigma"])
    angles = directions(keys, -45.0, 45.0)
    out = np.empty_like(images)
    for image, target, angle in zip(images, out, angles, strict=True):
        blur_along_line(image, target, weights, angle)
    return out


def tap_weights(radius: float, sigma: float) -> np.ndarray:
    """Return the weights of 2 ceil(radius) + 1 pixels, from the pixel itself ahead.

    >>> len(tap_weights(11.25, 3.5))
    25
    """
    bell = np.exp(-0.5 * (np.arange(2 * math.ceil(radius) + 1) / sigma) ** 2)
    return np.asarray(bell / bell.sum())


def offsets(count: int, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Return how far ahead each pixel on the line is, in columns and in rows; the angle is in degrees."""
    ahead, turn = np.arange(count), math.radians(angle)
    across, down = ahead * math.cos(turn), ahead * math.sin(turn)
    return np.ceil(across - 0.5).astype(np.int64), np.ceil(down - 0.5).astype(np.int64)


@cached_njit()
def directions(keys: np.ndarray, least: float, most: float) -> np.ndarray:
    """Draw an angle for every image, in degrees."""
    angles = np.empty(len(keys))
    for n in range(len(keys)):
        low, high = stream_words(keys[n], 0)
        angles[n] = least + (most - least) * random_uniform(0, low, high)
    return angles


def blur_along_line(image: np.ndarray, out: np.ndarray, weights: np.ndarray, angle: float) -> None:
    """Blur one image of bytes, gray or in color, into another."""
    across, down = offsets(len(weights), angle)
    left, top = max(0, -int(across.min())), max(0, -int(down.min()))
    right, bottom = max(0, int(across.max())), max(0, int(down.max()))
    channels = image.size // (image.shape[0] * image.shape[1])
    wide = cv2.copyMakeBorder(image, top, bottom, left, right, cv2.BORDER_REPLICATE)
    width = wide.shape[1]
    starts = ((down + top) * width + across + left) * channels
    sum_taps(wide.reshape(-1), out.reshape(len(out), -1), width * channels, *pad_to_four(starts, weights))
