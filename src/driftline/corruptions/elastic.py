"""Elastic transform: a random affine map, then a smooth random field of displacements.

Below severity 1 the Gaussian that smooths the field is up to twenty images wide. Mirrored at both ends, it is diagonal
in cosines, of which all but a few vanish. So wide fields are made of those few, within `MAX_RMS_ERROR`.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from driftline.corruptions.gaussian_blur import gaussian_weights
from driftline.corruptions.per_image_rng import ROUNDING_GUARD, random_bits, random_uniform, stream_words
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit

MAX_RMS_ERROR = 0.01  # pixels, root mean square: what a wide field of displacements may be off by
MIN_COSINES = 20  # cosines along an axis; mostly it is far more precise with these already
MIN_COSINE_SIGMA = 6.0  # the sigma, in pixels, from which on cosines are faster than taps


def elastic(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Warp by the affine map, then by the field, bilinear both times."""
    out = np.empty_like(images)
    height, width = images.shape[1:3]
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    for image, key, target in zip(images, keys, out, strict=True):
        pixels = cv2.cvtColor(image, cv2.COLOR_RGB2RGBA).astype(np.float32)  # of four channels a pixel is one vector
        affine = affine_map((height, width), corner_shifts(key) * parameters["affine"])
        warped = cv2.warpAffine(
            pixels, affine, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
        )
        across, down = (displacement(noise(key, (height, width), axis), parameters) for axis in range(2))
        bent = cv2.remap(warped, columns + across, rows + down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        _to_bytes(bent, target)
    return out


def affine_map(shape: tuple[int, int], moved: np.ndarray) -> np.ndarray:
    """Return the affine map that moves three corners of the central square by the given pixels (x, y)."""
    center = np.array([shape[1] // 2, shape[0] // 2], np.float32)
    reach = min(shape) // 3
    corners = center + np.array([[reach, reach], [reach, -reach], [-reach, -reach]], np.float32)
    return np.asarray(cv2.getAffineTransform(corners, corners + moved.astype(np.float32)))


@cached_njit()
def corner_shifts(key: np.uint64) -> np.ndarray:
    """Draw the shifts of three points, uniform from -1 to 1 in x and y."""
    low, high = stream_words(key, 0)
    drawn = np.empty((3, 2))
    for i in range(6):
        drawn[i // 2, i % 2] = 2 * random_uniform(i, low, high) - 1
    return drawn


@cached_njit()
def noise(key: np.uint64, shape: tuple[int, int], axis: int) -> np.ndarray:
    """Draw a field of numbers, uniform from -1 to 1."""
    low, high = stream_words(key, 1 + axis)
    drawn = np.empty(shape[0] * shape[1], np.float32)
    for i in range(len(drawn)):
        drawn[i] = np.float32(np.int32(random_bits(i, low, high))) * np.float32(2.0**-31)
    return drawn.reshape(shape)


def displacement(field: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Return the noise smoothed by a Gaussian (cut off at 3 sigma, mirrored at the edges) times alpha, in pixels."""
    alpha, sigma = parameters["alpha"], parameters["sigma"]
    if alpha == 0:
        return np.zeros_like(field)
    if sigma < MIN_COSINE_SIGMA:
        taps = gaussian_weights(sigma, 3)
        return np.asarray(cv2.sepFilter2D(field, -1, taps, taps * alpha, borderType=cv2.BORDER_REFLECT))
    (tall, high), (wide, across) = (cosines(side, sigma, MAX_RMS_ERROR / alpha) for side in field.shape)
    inner = (tall @ field @ wide.T) * np.outer(high, across * np.float32(alpha))
    return np.asarray(tall.T @ inner @ wide)


@lru_cache(maxsize=64)
def cosines(side: int, sigma: float, precision: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines along an axis that a Gaussian does not remove, as orthonormal rows, and their gains.

    What is left out of a field of noise with variance 1/3 has a root mean square below `precision`.
    """
    taps = gaussian_weights(sigma, 3)
    reach = len(taps) // 2
    gains = np.cos(np.pi / side * np.outer(np.arange(side), np.arange(-reach, reach + 1))) @ taps
    strongest = np.argsort(-np.abs(gains))
    energy = np.cumsum(gains[strongest] ** 2)
    lost = np.sqrt(np.maximum(energy[-1] ** 2 - energy**2, 0) / 3) / side
    kept = strongest[: max(MIN_COSINES, 1 + int(np.argmax(lost < precision)))]
    waves = np.cos(np.pi / side * np.outer(kept, np.arange(side) + 0.5)) * np.sqrt(2 / side)
    waves[kept == 0] = np.sqrt(1 / side)
    return waves.astype(np.float32), gains[kept].astype(np.float32)


@cached_njit()
def _to_bytes(pixels: np.ndarray, out: np.ndarray) -> None:
    height, width, _ = out.shape
    for y in range(height):
        line, target = pixels[y], out[y]
        for x in range(width):
            target[x, 0] = np.uint8(min(line[x, 0] + ROUNDING_GUARD, np.float32(255)))
            target[x, 1] = np.uint8(min(line[x, 1] + ROUNDING_GUARD, np.float32(255)))
            target[x, 2] = np.uint8(min(line[x, 2] + ROUNDING_GUARD, np.float32(255)))
