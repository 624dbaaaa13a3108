"""Zoom blur: the mean of an image and of its enlarged centers."""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np

from driftline.corruptions.per_image_rng import ROUNDING_GUARD, U64
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit


def zoom_blur(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Return the mean over all zooms and once more the image; a zoom of 1 is among them, so it counts twice."""
    zooms = zoom_factors(parameters)
    height, width = images.shape[1:3]
    lattices = (*_lattices(height, tuple(zooms[1:])), *_lattices(width, tuple(zooms[1:])))
    out = np.empty_like(images)
    for image, target in zip(images, out, strict=True):
        _mean(cv2.cvtColor(image, cv2.COLOR_RGB2RGBA), target, *lattices)  # of four channels a pixel is one vector
    return out


def zoom_factors(parameters: Parameters) -> np.ndarray:
    """Return all zooms. The last one depends on rounding: from 1 to 1.11 by .01 there are 12, not 11.

    >>> [len(zoom_factors({"start": 1, "stop": stop, "step": 0.01})) for stop in (1.11, 1.16)]
    [12, 16]
    """
    return np.arange(parameters["start"], parameters["stop"], parameters["step"])


def lattice(side: int, zoom: float) -> tuple[np.ndarray, np.ndarray]:
    """Return for each pixel of an enlarged axis the last original pixel at or before it, and the distance to it.

    The central ceil(side / zoom) pixels are spread over round(that * zoom), ends on ends, and the middle is kept.
    """
    kept = visible(side, zoom)
    spread = round(kept * zoom)
    place = (np.arange(side) + (spread - side) // 2) * ((kept - 1) / max(spread - 1, 1))
    whole = np.minimum(place.astype(np.int64), max(kept - 2, 0))
    return whole + (side - kept) // 2, (place - whole).astype(np.float32)


def visible(side: int, zoom: float) -> int:
    """Return the number of pixels of an axis that are visible in a zoom."""
    return math.ceil(side / zoom)


@lru_cache(maxsize=128)
def _lattices(side: int, zooms: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the lattices of all zooms, as arrays of (pixel, zoom)."""
    pairs = [lattice(side, zoom) for zoom in zooms]
    whole = np.array([whole for whole, _ in pairs], np.uint64).reshape(len(zooms), side)
    behind = np.array([behind for _, behind in pairs], np.float32).reshape(len(zooms), side)
    return np.ascontiguousarray(whole.T), np.ascontiguousarray(behind.T)


@cached_njit(fastmath=True)
def _mean(
    image: np.ndarray, out: np.ndarray, rows: np.ndarray, downs: np.ndarray, columns: np.ndarray, rights: np.ndarray
) -> None:
    height, width, _ = image.shape
    zooms, row = rows.shape[1], width * 4
    share = np.float32(1 / (zooms + 2))
    pixels = image.reshape(height, row).astype(np.float32)
    lines, total = np.empty(zooms * row, np.float32), np.empty(row, np.float32)
    places = columns * U64(4) + np.arange(zooms).astype(np.uint64) * U64(row)
    for y in range(height):
        for k in range(zooms):
            top, bottom, down = pixels[rows[y, k]], pixels[rows[y, k] + U64(1)], downs[y, k]
            line = lines[k * row : (k + 1) * row]
            for x in range(row):
                line[x] = top[x] + down * (bottom[x] - top[x])
        own, target = pixels[y], out[y]
        for x in range(row):
            total[x] = 2 * own[x]
        _accumulate(lines, total, places, rights)
        for x in range(row):
            total[x] = min(total[x] * share + ROUNDING_GUARD, np.float32(255))
        for x in range(width):
            target[x, 0], target[x, 1] = np.uint8(total[4 * x]), np.uint8(total[4 * x + 1])
            target[x, 2] = np.uint8(total[4 * x + 2])


@cached_njit(fastmath=True)
def _accumulate(lines: np.ndarray, total: np.ndarray, places: np.ndarray, rights: np.ndarray) -> None:
    """Add to each pixel what all zooms show there; written out by channel, and so compiled to vectors."""
    for x in range(len(places)):
        red, green, blue, none = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for k in range(places.shape[1]):
            at, right = places[x, k], rights[x, k]
            r, g, b, o = lines[at], lines[at + U64(1)], lines[at + U64(2)], lines[at + U64(3)]
            red += r + right * (lines[at + U64(4)] - r)
            green += g + right * (lines[at + U64(5)] - g)
            blue += b + right * (lines[at + U64(6)] - b)
            none += o + right * (lines[at + U64(7)] - o)
        at = U64(4 * x)
        total[at] += red
        total[at + U64(1)] += green
        total[at + U64(2)] += blue
        total[at + U64(3)] += none
