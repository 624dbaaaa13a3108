"""Resize images of bytes, equal to the bit to Pillow's filters for boxes and bilinear interpolation.

Columns are resized first and rounded to bytes, then rows, with weights of 22 bits. The image is turned for the columns,
so that neighbors in memory have the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import cv2
import numpy as np

from driftline.jit import cached_njit

BITS = 22
I32 = np.int32
Filter = Literal["box", "bilinear"]
FILTERS: dict[Filter, tuple[float, Callable[[float], float]]] = {
    "box": (0.5, lambda x: float(-0.5 < x <= 0.5)),
    "bilinear": (1.0, lambda x: max(1 - abs(x), 0.0)),
}
"""How far a filter reaches if the image is enlarged, and its weight at a distance."""


class Taps(NamedTuple):
    """For each new position on an axis: the first old one that has a weight, the number of these, and the weights."""

    starts: np.ndarray
    counts: np.ndarray
    weights: np.ndarray


def resample(image: np.ndarray, height: int, width: int, by: Filter) -> np.ndarray:
    """Return an image of bytes, (h, w, channels), at another size; when it is shrunk, all its pixels count."""
    old_height, old_width, channels = image.shape
    if old_width != width:
        turned, image = cv2.transpose(np.ascontiguousarray(image)), np.empty((width, old_height, channels), np.uint8)
        _weigh(turned.reshape(old_width, -1), image.reshape(width, -1), *taps(old_width, width, by))
        image = cv2.transpose(image).reshape(old_height, width, channels)
    image = np.ascontiguousarray(image)
    if old_height == height:
        return image
    out = np.empty((height, width, channels), np.uint8)
    _weigh(image.reshape(old_height, -1), out.reshape(height, -1), *taps(old_height, height, by))
    return out


def flipped(image: np.ndarray) -> np.ndarray:
    """Return an image with left and right exchanged."""
    return np.asarray(cv2.flip(image, 1))


@lru_cache(maxsize=1024)
def taps(old: int, new: int, by: Filter) -> Taps:
    """Return the weights that turn an axis of one length into another.

    >>> taps(4, 2, "box").weights / 2**22
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    support, weight = FILTERS[by]
    scale = old / new
    reach = max(scale, 1.0)
    starts, rows = [], []
    for center in (np.arange(new) + 0.5) * scale:
        first, end = max(int(center - support * reach + 0.5), 0), min(int(center + support * reach + 0.5), old)
        row = np.array([weight((x - center + 0.5) / reach) for x in range(first, end)])
        starts.append(first)
        rows.append((0.5 + row / row.sum() * (1 << BITS)).astype(np.int32))
    counts = np.array([len(row) for row in rows])
    weights = np.zeros((new, counts.max()), np.int32)
    for k, row in enumerate(rows):
        weights[k, : len(row)] = row
    return Taps(np.array(starts), counts, weights)


@cached_njit()
def _weigh(rows: np.ndarray, out: np.ndarray, starts: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> None:
    """Set each row of `out` to a weighted sum of rows, rounded; one, two and three are the most frequent."""
    total = np.empty(rows.shape[1], np.int32)
    half, bits = I32(1 << (BITS - 1)), I32(BITS)
    for y in range(len(out)):
        line, start, count = out[y], starts[y], counts[y]
        a, u = rows[start], weights[y, 0]
        b, v = (rows[start + 1], weights[y, 1]) if count > 1 else (a, I32(0))
        c, w = (rows[start + 2], weights[y, 2]) if count > 2 else (a, I32(0))
        if count == 1:
            for x in range(len(line)):
                line[x] = I32(u * I32(a[x]) + half) >> bits
        elif count <= 3:
            for x in range(len(line)):
                line[x] = I32(u * I32(a[x]) + v * I32(b[x]) + w * I32(c[x]) + half) >> bits
        else:
            for x in range(len(line)):
                total[x] = u * I32(a[x]) + v * I32(b[x]) + w * I32(c[x]) + half
            for k in range(3, count):
                other, weight = rows[start + k], weights[y, k]
                for x in range(len(line)):
                    total[x] += weight * I32(other[x])
            for x in range(len(line)):
                line[x] = total[x] >> bits
