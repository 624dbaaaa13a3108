"""Defocus blur: a disk, smoothed a little, with the flaws of the original.

The kernel has a defect, which is kept: the smoothing mirrors what leaves its frame, so that disks that
touch the frame sum to more than 1 (1.013 at radius 8); and a frame of even side moves the image by half a pixel.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np

from driftline.corruptions.convolution import add_taps, pad_to_four
from driftline.corruptions.per_image_rng import ROUNDING_GUARD
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit

CHANNELS = 3
FRAME = 8  # disks up to this radius are drawn in a frame of -8 .. 8


def defocus_blur(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Correlate each channel with the disk; the edge is mirrored without repeating it."""
    out = np.empty_like(images)
    plan = _plan(parameters["radius"], parameters["alias_sigma"])
    before, behind = plan.before + 1, plan.behind + 1  # one more on each side, which the smoothing takes away
    for image, target in zip(images, out, strict=True):
        wide = cv2.copyMakeBorder(image, before, behind, before, behind, cv2.BORDER_REFLECT_101)
        _correlate(wide.reshape(len(wide), -1), target.reshape(len(target), -1), *plan[2:])
    return out


def mirrored(index: np.ndarray, length: int) -> np.ndarray:
    """Return indices mirrored at the ends of an axis, which are not repeated.

    >>> mirrored(np.arange(-2, 5), 3).tolist()
    [2, 1, 0, 1, 2, 1, 0]
    """
    index = np.abs(index) % (2 * length - 2)
    return np.asarray(np.minimum(index, 2 * length - 2 - index))


def disk(radius: float) -> np.ndarray:
    """Return the disk before smoothing: 1 inside, 0 outside."""
    # Beyond the usual frame the grid starts at -radius, whole or not: 8.5 gives 18 points, and no center.
    line = np.arange(-FRAME, FRAME + 1) if radius <= FRAME else np.arange(-radius, radius + 1)
    return (line[:, None] ** 2 + line**2 <= radius**2).astype(float)


def smoothing_weights(radius: float, sigma: float) -> np.ndarray:
    """Return the Gaussian that smooths the disk: 3 taps, and 5 for disks beyond the usual frame."""
    reach = 1 if radius <= FRAME else 2
    taps = np.arange(-reach, reach + 1)
    bell = np.exp(-0.5 * (taps / sigma) ** 2) if sigma > 0 else (taps == 0).astype(float)
    return np.asarray(bell / bell.sum())


def kernel_of(radius: float, sigma: float) -> np.ndarray:
    """Return the disk, normalized and then smoothed, as if its frame were mirrored."""
    flat, bell = disk(radius), smoothing_weights(radius, sigma)
    place, smooth = np.arange(len(flat)), np.zeros_like(flat)
    for tap, weight in enumerate(bell, start=-(len(bell) // 2)):
        np.add.at(smooth, (place, mirrored(place + tap, len(flat))), weight)
    return np.asarray(smooth @ (flat / flat.sum()) @ smooth.T)


class _Plan(NamedTuple):
    """How to correlate with a kernel: by its distinct rows, each as a change of the one before, and a last smoothing.

    Neighboring rows of a disk differ at their ends only, so that far fewer products are needed. The taps of all
    changes lie one behind another, in fours; `starts` says where each begins.
    """

    before: int  # how far the kernel reaches to the left and up
    behind: int
    smoothing: np.ndarray  # weights of a neighbor and of the pixel itself
    of_row: np.ndarray  # which of the distinct rows each row is
    starts: np.ndarray
    taps: np.ndarray
    values: np.ndarray


@lru_cache(maxsize=64)
def _plan(radius: float, sigma: float) -> _Plan:
    kernel, smoothing = kernel_of(radius, sigma), np.array([0, 1], np.float32)
    if radius < FRAME - 1:  # nothing is mirrored: the bare disk has simpler rows, and can be smoothed afterwards
        bell = smoothing_weights(radius, sigma)
        kernel, smoothing = disk(radius) / disk(radius).sum(), bell[:2].astype(np.float32)
    used = np.flatnonzero(kernel.any(axis=0))
    before, behind = len(kernel) // 2 - used[0], used[-1] - len(kernel) // 2
    kernel = kernel[used[0] : used[-1] + 1, used[0] : used[-1] + 1].round(12)  # equal rows are equal but for rounding
    distinct, of_row = np.unique(kernel, axis=0, return_inverse=True)
    changes = [pad_to_four(np.flatnonzero(c) * CHANNELS, c[c != 0]) for c in np.diff(distinct, axis=0, prepend=0)]
    starts = np.cumsum([0, *(len(taps) for taps, _ in changes)])
    taps, values = (np.concatenate(parts) for parts in zip(*changes, strict=True))
    return _Plan(int(before), int(behind), smoothing, of_row.ravel(), starts, taps, values)


@cached_njit(fastmath=True)
def _correlate(
    wide: np.ndarray,
    out: np.ndarray,
    smoothing: np.ndarray,
    of_row: np.ndarray,
    starts: np.ndarray,
    taps: np.ndarray,
    values: np.ndarray,
) -> None:
    height, row = out.shape[0] + 2, out.shape[1] + 2 * CHANNELS
    total = np.zeros((height, row), np.float32)
    pixels, parts = np.empty(wide.shape[1], np.float32), np.zeros((len(starts) - 1, row), np.float32)
    for y in range(len(wide)):
        line = wide[y]
        for x in range(len(line)):
            pixels[x] = line[x]
        for j in range(len(parts)):
            part, former = parts[j], parts[max(j - 1, 0)]
            for x in range(row):
                part[x] = former[x] if j else np.float32(0)
            add_taps(part, pixels, 0, taps[starts[j] : starts[j + 1]], values[starts[j] : starts[j + 1]])
        for a in range(max(0, y - height + 1), min(len(of_row), y + 1)):
            part, sums = parts[of_row[a]], total[y - a]
            for x in range(row):
                sums[x] += part[x]
    _smooth(total, out, smoothing[0], smoothing[1])


@cached_njit(fastmath=True)
def _smooth(total: np.ndarray, out: np.ndarray, side: float, middle: float) -> None:
    line = np.empty(total.shape[1], np.float32)
    for y in range(len(out)):
        above, own, below, target = total[y], total[y + 1], total[y + 2], out[y]
        for x in range(len(line)):
            line[x] = side * (above[x] + below[x]) + middle * own[x]
        left, center, right = line, line[CHANNELS:], line[2 * CHANNELS :]
        for x in range(len(target)):
            value = side * (left[x] + right[x]) + middle * center[x] + ROUNDING_GUARD
            target[x] = np.uint8(min(value, np.float32(255)))
