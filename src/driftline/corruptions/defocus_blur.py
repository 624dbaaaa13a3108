"""Defocus blur: a disk, smoothed a little, with the flaws of the original.

The kernel has a defect, which is kept: the smoothing mirrors what leaves its frame, so that disks that
touch the frame sum to more than 1 (1.013 at radius 8); and a frame of even side moves the image by half a pixel.

So we sum bytes over the disk, in whole numbers, and smooth the sums. Where the disk touches its frame, what the mirror
changes is added: it lies in the outermost rows and columns of the kernel.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np

from driftline.corruptions.convolution import to_bytes
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit

CHANNELS, F32 = 3, np.float32
FRAME = 8  # disks up to this radius are drawn in a frame of -8 .. 8
REACH = 2  # of the smoothing, in pixels
LANES = 128  # numbers of 16 bits that a loop treats at a time


def defocus_blur(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Correlate each channel with the disk; the edge is mirrored without repeating it."""
    out = np.empty_like(images)
    columns, weights, rim = _plan(parameters["radius"], parameters["alias_sigma"])
    height, row = out.shape[1], out.shape[2] * CHANNELS
    changes = np.zeros((height if len(rim.shifts) else 0, row), np.float32)
    sums = np.empty((height + 2 * REACH, _whole_lanes(row + 2 * REACH * CHANNELS)), columns.kind)
    for image, target in zip(images, out, strict=True):
        _sum_over_disk(_widened(image, columns), sums, *columns.spans, columns.of_column)
        if len(rim.shifts):
            down = _rim_of(cv2.transpose(image), columns, weights, rim).reshape(-1, height, CHANNELS)
            changes = _rim_of(image, columns, weights, rim) + cv2.transpose(down).reshape(height, row)
        _smooth(sums, changes, weights, target.reshape(height, row))
    return out


def _widened(image: np.ndarray, columns: _Columns) -> np.ndarray:
    needed = (image.shape[1] + 2 * REACH) * CHANNELS
    before, behind = columns.before + REACH, columns.behind + REACH
    more = -(-(_whole_lanes(needed) - needed) // CHANNELS)
    wide = cv2.copyMakeBorder(image, before, behind, before, behind + more, cv2.BORDER_REFLECT_101)
    return np.asarray(wide.reshape(len(wide), -1))


def _whole_lanes(count: int) -> int:
    """Return the length of a row without a rest that the processor would treat number by number."""
    return -(-count // LANES) * LANES


def _rim_of(image: np.ndarray, columns: _Columns, weights: np.ndarray, rim: _Rim) -> np.ndarray:
    """Return what the mirror changes in the outermost columns of the kernel."""
    height, row = image.shape[0], image.shape[1] * CHANNELS
    wide = _widened(image, columns)
    total = np.zeros((height + 2 * REACH, row), np.float32)
    _sum_rim(wide, total, *rim)
    changes = np.empty((height, row), np.float32)
    _smooth_columns(total, changes, weights)
    return changes


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


class _Columns(NamedTuple):
    """How to sum over the disk: by its distinct columns, which are also its rows."""

    before: int  # how far the disk reaches to the left and up
    behind: int
    kind: type  # of the sums
    spans: tuple[np.ndarray, np.ndarray]
    """The first row of each distinct column, and the one behind its last."""
    of_column: np.ndarray
    """Which of the distinct columns each column is."""


class _Rim(NamedTuple):
    """What the mirror changes: sums over the outermost columns of the disk, shifted and weighted; an even number."""

    starts: np.ndarray
    ends: np.ndarray
    shifts: np.ndarray
    parts: np.ndarray
    weights: np.ndarray


@lru_cache(maxsize=64)
def _plan(radius: float, sigma: float) -> tuple[_Columns, np.ndarray, _Rim]:
    flat, bell = disk(radius), smoothing_weights(radius, sigma)
    used = np.flatnonzero(flat.any(axis=0))
    first, last, middle = used[0], used[-1], len(flat) // 2
    distinct, of_column = np.unique(flat[used[0] : used[-1] + 1, used], axis=0, return_inverse=True)
    spans = distinct.argmax(axis=1), distinct.argmax(axis=1) + distinct.sum(axis=1).astype(np.int64)
    kind = np.uint16 if flat.sum() * 255 < 2**16 else np.uint32
    columns = _Columns(int(middle - first), int(last - middle), kind, spans, of_column.ravel())
    weights = np.zeros(REACH + 1)
    weights[: len(bell) // 2 + 1] = bell[len(bell) // 2 :]
    changes = _mirrored_less_plain(bell, len(flat))[:, used]
    places, which = changes.nonzero()
    needed, parts = np.unique(columns.of_column[which], return_inverse=True)
    by = (changes[places, which] / flat.sum()).astype(np.float32)
    if len(by) % 2:  # they are summed two at a time
        places, parts, by = np.append(places, places[0]), np.append(parts, parts[0]), np.append(by, F32(0))
    rim = _Rim(spans[0][needed], spans[1][needed], places - first, parts, by)
    return columns, np.append(weights, flat.sum()).astype(np.float32), rim


def _mirrored_less_plain(bell: np.ndarray, side: int) -> np.ndarray:
    """Return what smoothing a frame changes if it mirrors the frame: new places, `REACH` more on each side, by old."""
    changes, place = np.zeros((side + 2 * REACH, side)), np.arange(side)
    for tap, weight in enumerate(bell, start=-(len(bell) // 2)):
        np.add.at(changes, (place + REACH, mirrored(place + tap, side)), weight)
        changes[place + REACH - tap, place] -= weight
    return np.asarray(changes.round(12))


@cached_njit()
def _sum_columns(wide: np.ndarray, y: int, parts: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
    """Sum over each distinct column of the disk, whose sums in the row above are known."""
    for j in range(len(starts)):
        part = parts[j]
        if y == 0:
            part[:] = 0
            for row in range(starts[j], ends[j]):
                new = wide[row]
                for x in range(len(part)):
                    part[x] += new[x]
        else:
            new, old = wide[y + ends[j] - 1], wide[y + starts[j] - 1]
            for x in range(len(part)):
                part[x] += new[x] - old[x]


@cached_njit()
def _sum_over_disk(
    wide: np.ndarray, sums: np.ndarray, starts: np.ndarray, ends: np.ndarray, of_column: np.ndarray
) -> None:
    parts = np.empty((len(starts), wide.shape[1]), np.uint16)
    for y in range(len(sums)):
        _sum_columns(wide, y, parts, starts, ends)
        total, whole = sums[y], len(of_column) // 4 * 4
        total[:] = 0
        for k in range(0, whole, 4):
            a, b = parts[of_column[k], k * CHANNELS :], parts[of_column[k + 1], (k + 1) * CHANNELS :]
            c, d = parts[of_column[k + 2], (k + 2) * CHANNELS :], parts[of_column[k + 3], (k + 3) * CHANNELS :]
            for x in range(len(total)):
                total[x] += a[x] + b[x] + c[x] + d[x]
        for k in range(whole, len(of_column)):
            part = parts[of_column[k], k * CHANNELS :]
            for x in range(len(total)):
                total[x] += part[x]


@cached_njit(fastmath=True)
def _sum_rim(
    wide: np.ndarray,
    total: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    shifts: np.ndarray,
    which: np.ndarray,
    weights: np.ndarray,
) -> None:
    parts = np.empty((len(starts), wide.shape[1]), np.uint16)
    for y in range(len(total)):
        _sum_columns(wide, y, parts, starts, ends)
        out = total[y]
        for k in range(0, len(shifts), 2):
            a, b = parts[which[k], shifts[k] * CHANNELS :], parts[which[k + 1], shifts[k + 1] * CHANNELS :]
            u, v = weights[k], weights[k + 1]
            for x in range(len(out)):
                out[x] += u * F32(a[x]) + v * F32(b[x])


@cached_njit(fastmath=True)
def _smooth(sums: np.ndarray, changes: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Smooth the sums in both directions, divide by their number, and add what the mirror changes."""
    line, row = np.empty(sums.shape[1], np.float32), np.empty(out.shape[1], np.float32)
    own, near, far = weights[0] / weights[3], weights[1] / weights[3], weights[2] / weights[3]
    for y in range(len(out)):
        _smooth_column(sums, y, line, weights)
        a, b, c, d, e = line, line[CHANNELS:], line[2 * CHANNELS :], line[3 * CHANNELS :], line[4 * CHANNELS :]
        for x in range(len(row)):
            row[x] = own * c[x] + near * (b[x] + d[x]) + far * (a[x] + e[x])
        if len(changes):
            change = changes[y]
            for x in range(len(row)):
                row[x] += change[x]
        to_bytes(row, out[y])


@cached_njit(fastmath=True)
def _smooth_columns(total: np.ndarray, out: np.ndarray, weights: np.ndarray) -> None:
    for y in range(len(out)):
        _smooth_column(total, y, out[y], weights)


@cached_njit(fastmath=True)
def _smooth_column(rows: np.ndarray, y: int, out: np.ndarray, weights: np.ndarray) -> None:
    own, near, far = weights[0], weights[1], weights[2]
    a, b, c, d, e = rows[y], rows[y + 1], rows[y + 2], rows[y + 3], rows[y + 4]
    for x in range(len(out)):
        out[x] = own * F32(c[x]) + near * (F32(b[x]) + F32(d[x])) + far * (F32(a[x]) + F32(e[x]))
