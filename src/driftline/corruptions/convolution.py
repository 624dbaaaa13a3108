"""Convolution as weighted sums of shifted rows, for all blurs."""

from __future__ import annotations

import numpy as np

from driftline.corruptions.per_image_rng import ROUNDING_GUARD
from driftline.jit import cached_njit

CACHED = 8400  # numbers of all rows of a sum that stay close to the processor


def pad_to_four(starts: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pad taps with ones of weight 0, since they are summed four at a time."""
    fill = -len(weights) % 4
    return (
        np.concatenate([starts, np.full(fill, starts[0])]).astype(np.int64),
        np.concatenate([weights, np.zeros(fill)]).astype(np.float32),
    )


@cached_njit(fastmath=True)
def add_taps(total: np.ndarray, pixels: np.ndarray, shift: int, starts: np.ndarray, weights: np.ndarray) -> None:
    """Add to a row the rows that begin at `starts` + `shift`, times their weights."""
    row = len(total)
    for k in range(0, len(starts), 4):
        first, second = pixels[starts[k] + shift :][:row], pixels[starts[k + 1] + shift :][:row]
        third, fourth = pixels[starts[k + 2] + shift :][:row], pixels[starts[k + 3] + shift :][:row]
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for x in range(row):
            total[x] += a * first[x] + b * second[x] + c * third[x] + d * fourth[x]


@cached_njit(fastmath=True)
def to_bytes(total: np.ndarray, line: np.ndarray) -> None:
    """Write a row of sums as bytes: cut to whole numbers, never rounded."""
    for x in range(len(line)):
        line[x] = np.uint8(min(total[x] + ROUNDING_GUARD, np.float32(255)))


@cached_njit(fastmath=True)
def sum_taps(wide: np.ndarray, out: np.ndarray, stride: int, starts: np.ndarray, weights: np.ndarray) -> None:
    """Set every row of `out` to the sum of taps into the flat image `wide`, whose rows are `stride` long."""
    pixels = np.empty(len(wide), np.float32)
    for i in range(len(wide)):
        pixels[i] = wide[i]
    total = np.empty(out.shape[1], np.float32)
    for y in range(len(out)):
        for x in range(len(total)):
            total[x] = 0
        add_taps(total, pixels, y * stride, starts, weights)
        to_bytes(total, out[y])


def pairs_of(bell: np.ndarray) -> np.ndarray:
    """Return the weights of a symmetric kernel from its middle outwards; pairs are summed four at a time.

    >>> pairs_of(np.array([0.25, 0.5, 0.25])).tolist()
    [0.5, 0.25, 0.0, 0.0, 0.0]
    """
    half = bell[len(bell) // 2 :]
    return np.concatenate([half, np.zeros(-(len(half) - 1) % 4)]).astype(np.float32)


@cached_njit(fastmath=True)
def sum_both_ways(wide: np.ndarray, out: np.ndarray, step: int, weights: np.ndarray) -> None:
    """Apply symmetric weights along rows and columns.

    `wide` has as many pixels more on the left and right as there are pairs of weights, `step` numbers each; rows are
    continued by the first and the last.
    """
    reach, height, row = len(weights) - 1, len(out), out.shape[1]
    lines = np.empty((height + 2 * reach, row), np.float32)
    pixels = np.empty(wide.shape[1], np.float32)
    for y in range(height):
        line = wide[y]
        for x in range(len(pixels)):
            pixels[x] = line[x]
        _sum_pairs(lines[y + reach], pixels, reach * step, step, weights)
    for y in range(reach):
        lines[y], lines[height + reach + y] = lines[reach], lines[height + reach - 1]
    flat = lines.reshape(-1)
    block = CACHED // (2 * reach + 1)
    for left in range(0, row, block):
        total = np.empty(min(block, row - left), np.float32)
        for y in range(height):
            _sum_pairs(total, flat, (y + reach) * row + left, row, weights)
            to_bytes(total, out[y, left : left + len(total)])


@cached_njit(fastmath=True)
def _sum_pairs(total: np.ndarray, pixels: np.ndarray, middle: int, step: int, weights: np.ndarray) -> None:
    """Set a row to the weighted sum of the row at `middle` and of the pairs of rows on either side of it."""
    row, own, weight = len(total), pixels[middle:], weights[0]
    for x in range(row):
        total[x] = weight * own[x]
    for k in range(1, len(weights), 4):
        one, two, three, four = k * step, (k + 1) * step, (k + 2) * step, (k + 3) * step
        a, b = pixels[middle - one :][:row], pixels[middle + one :][:row]
        c, d = pixels[middle - two :][:row], pixels[middle + two :][:row]
        e, f = pixels[middle - three :][:row], pixels[middle + three :][:row]
        g, h = pixels[middle - four :][:row], pixels[middle + four :][:row]
        u, v, w, z = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for x in range(row):
            total[x] += u * (a[x] + b[x]) + v * (c[x] + d[x]) + w * (e[x] + f[x]) + z * (g[x] + h[x])
