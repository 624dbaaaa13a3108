"""Fog: a plasma fractal laid over the image, which is then darkened to its old maximum."""

from __future__ import annotations

import numpy as np

from driftline.corruptions.per_image_rng import random_bits, stream_words
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit

INITIAL_AMPLITUDE = 100.0  # the first amplitude; the noise has its square


def fog(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Add `strength` times plasma to all channels, and multiply by max / (max + strength)."""
    out = np.empty_like(images)
    side = map_side(images.shape[1:3])
    _apply_fog(images, out, keys, side, parameters["strength"], parameters["wibbledecay"])
    return out


def map_side(shape: tuple[int, ...]) -> int:
    """Return the side of the plasma, a power of 2; its corner of the size of the image is used.

    >>> map_side((224, 224)), map_side((32, 32))
    (256, 32)
    """
    return int(2 ** (max(shape) - 1).bit_length())


@cached_njit()
def plasma(side: int, decay: float, low: np.uint32, high: np.uint32) -> np.ndarray:
    """Return diamond-square noise on a torus, from exactly 0 to exactly 1."""
    land, amplitude, drawn = np.zeros((1, 1), np.float32), INITIAL_AMPLITUDE, 0
    while len(land) < side:
        land = _diamond_square_step(land, np.float32(amplitude * amplitude), drawn, low, high)
        drawn += land.size
        amplitude /= decay
    flat = land.reshape(-1)
    least = most = flat[0]
    for height in flat:
        least, most = min(least, height), max(most, height)
    for i in range(len(flat)):
        flat[i] = (flat[i] - least) / (most - least)
    return land


@cached_njit(fastmath=True)
def _diamond_square_step(
    land: np.ndarray, reach: np.float32, drawn: int, low: np.uint32, high: np.uint32
) -> np.ndarray:
    """Add the middles of squares, then of edges from two corners and two middles, each with noise."""
    side = len(land)
    centers, finer = np.empty((side, side), np.float32), np.empty((2 * side, 2 * side), np.float32)
    noise = np.empty(2 * side, np.float32)
    scale, quarter = reach * np.float32(2.0**-31), np.float32(0.25)
    for y in range(side):
        for x in range(side):
            noise[x] = np.float32(np.int32(random_bits(drawn + y * side + x, low, high))) * scale
        own, under, line = land[y], land[(y + 1) % side], centers[y]
        for x in range(side - 1):
            line[x] = (own[x] + own[x + 1] + under[x] + under[x + 1]) * quarter + noise[x]
        line[side - 1] = (own[side - 1] + own[0] + under[side - 1] + under[0]) * quarter + noise[side - 1]
    drawn += side * side
    for y in range(side):
        for x in range(2 * side):
            noise[x] = np.float32(np.int32(random_bits(drawn + 2 * y * side + x, low, high))) * scale
        own, under, middle, over = land[y], land[(y + 1) % side], centers[y], centers[y - 1]
        upper, lower = finer[2 * y], finer[2 * y + 1]
        for x in range(side):
            right, left = x + 1 if x + 1 < side else 0, x - 1 if x > 0 else side - 1
            upper[2 * x] = own[x]
            upper[2 * x + 1] = (own[x] + own[right] + middle[x] + over[x]) * quarter + noise[x]
            lower[2 * x] = (own[x] + under[x] + middle[x] + middle[left]) * quarter + noise[side + x]
            lower[2 * x + 1] = middle[x]
    return finer


@cached_njit(fastmath=True)
def _apply_fog(images: np.ndarray, out: np.ndarray, keys: np.ndarray, side: int, strength: float, decay: float) -> None:
    count, height, width, _ = images.shape
    thick = np.empty(3 * width, np.float32)
    for n in range(count):
        low, high = stream_words(keys[n], 0)
        land = plasma(side, decay, low, high)
        brightest = np.uint8(0)
        for value in images[n].reshape(-1):
            brightest = max(brightest, value)
        darker = np.float32(brightest / (brightest + 255 * strength))
        for y in range(height):
            line, target, veil = images[n, y].reshape(-1), out[n, y].reshape(-1), land[y]
            for x in range(width):
                thick[3 * x] = thick[3 * x + 1] = thick[3 * x + 2] = np.float32(255 * strength) * veil[x]
            for x in range(3 * width):
                target[x] = np.uint8(min((line[x] + thick[x]) * darker, np.float32(255)))
