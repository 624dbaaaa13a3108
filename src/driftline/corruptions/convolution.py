"""Convolution as weighted sums of shifted rows, for all blurs."""

from __future__ import annotations

import numpy as np

from driftline.corruptions.per_image_rng import ROUNDING_GUARD
from driftline.jit import cached_njit


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


@cached_njit(fastmath=True)
def sum_both_ways(wide: np.ndarray, out: np.ndarray, along: np.ndarray, down: np.ndarray, weights: np.ndarray) -> None:
    """Apply weights along the rows and then the columns of `wide`; taps begin at `along` and `down`."""
    row, length = out.shape[1], wide.shape[1]
    lines, pixels = np.zeros(len(wide) * row, np.float32), np.empty(length, np.float32)
    for y in range(len(wide)):
        line = wide[y]
        for x in range(length):
            pixels[x] = line[x]
        add_taps(lines[y * row : (y + 1) * row], pixels, 0, along, weights)
    total = np.empty(row, np.float32)
    for y in range(len(out)):
        for x in range(row):
            total[x] = 0
        add_taps(total, lines, y * row, down, weights)
        to_bytes(total, out[y])
