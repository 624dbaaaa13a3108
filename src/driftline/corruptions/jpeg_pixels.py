"""What JPEG does to pixels, without the file: equal to the bit to what libjpeg stores and reads again.

Coding numbers in bits loses nothing, so it is left out. The rest is done as libjpeg does it: colors become brightness
and two differences at half the resolution; blocks of 8 by 8 are transformed in whole numbers ("islow", the products of
Loeffler, Ligtenberg and Moschytz, ICASSP 1989, with constants of 13 bits) and divided by the table of the quality; and
back, where the differences are enlarged with weights of 3/4 and 1/4 ("fancy upsampling").

A transform runs down the columns, so that neighbors in memory are treated alike; planes are turned in between.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from driftline.jit import cached_njit

I16, I32, U32, F32 = np.int16, np.int32, np.uint32, np.float32
# The tables of the JPEG standard, annex K.
BRIGHTNESS = """16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 98 112 100 103 99"""
COLOR = """17 18 24 47 99 99 99 99 18 21 26 66 99 99 99 99 24 26 56 99 99 99 99 99 47 66 99 99 99 99 99 99
99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99 99"""
MIDDLE = (128 << 16) + 32767  # of a difference of colors, in 16 bits, and what rounds it
# The transform in 13 bits: .541196100, .765366865 and 1.847759065 for its even half. The odd half is the same there and
# back: each weight is a sum of constants such as .298631336 - .899976223 - 1.961570560 + 1.175875602.
TURN, MORE, LESS = 4433, 6270, 15137
ODD = ((-11363, 9633, -6436, 2260), (9633, 2261, -11362, 6437), (-6436, -11362, -2259, 9633), (2260, 6437, 9633, 11363))


def compressed(image: np.ndarray, quality: int) -> np.ndarray:
    """Return an image of bytes, (height, width, 3), as JPEG of a quality from 1 to 100 shows it."""
    height, width = image.shape[:2]
    rows, columns = (height + 1) // 2, (width + 1) // 2
    if height % 2 or width % 16:
        image = cv2.copyMakeBorder(image, 0, height % 2, 0, -width % 16, cv2.BORDER_REPLICATE)
    bright = np.empty(image.shape[:2], np.uint8)
    color = np.empty((2, rows, image.shape[1] // 2), np.uint8)
    _to_brightness_and_color(cv2.cvtColor(image, cv2.COLOR_RGB2RGBA).view(np.uint32)[..., 0], bright, color)
    bright = _through_blocks(_in_eights(bright), quality, BRIGHTNESS)
    stacked = _in_eights(color[0]), _in_eights(color[1])
    color = _through_blocks(cv2.vconcat(stacked), quality, COLOR).reshape(2, -1, color.shape[2])
    left, right = np.empty((2, 2 * rows, columns), np.uint8), np.empty((2, 2 * rows, columns), np.uint8)
    _enlarge(color[:, :rows, :columns], left, right)
    blue, red = (cv2.merge((a, b)).reshape(2 * rows, -1) for a, b in zip(left, right, strict=True))
    words = np.empty((height, width), np.uint32)
    _to_rgb(bright, blue, red, words)
    return np.asarray(cv2.cvtColor(words.view(np.uint8).reshape(height, width, 4), cv2.COLOR_RGBA2RGB))


def _in_eights(plane: np.ndarray) -> np.ndarray:
    """Repeat the last row and column until blocks of 8 fill the plane."""
    height, width = plane.shape
    if height % 8 == width % 8 == 0:
        return plane
    return np.asarray(cv2.copyMakeBorder(plane, 0, -height % 8, 0, -width % 8, cv2.BORDER_REPLICATE))


def _through_blocks(plane: np.ndarray, quality: int, usual: str) -> np.ndarray:
    """Return a plane after the transform of its blocks, the division by the table, and the way back."""
    turned = cv2.transpose(plane)
    half = np.empty(turned.shape, np.int16)
    _forward_rows(turned, half)
    both = cv2.transpose(half)
    _divide_columns(both, *_divisors(quality, usual, plane.shape[1]))
    _backward_rows(cv2.transpose(both), turned)
    return np.asarray(cv2.transpose(turned))


@lru_cache(maxsize=64)
def _divisors(quality: int, usual: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the table of a quality, repeated along a row of blocks, and the inverse of 8 times it."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    table = ((np.array(usual.split(), int).reshape(8, 8) * percent + 50) // 100).clip(1, 255)
    wide = np.tile(table, (1, width // 8)).astype(np.int16)
    return wide, (1 / (8 * wide)).astype(np.float32)


@cached_njit()
def _to_brightness_and_color(words: np.ndarray, bright: np.ndarray, color: np.ndarray) -> None:
    blue, red = np.empty((2, bright.shape[1]), np.uint8), np.empty((2, bright.shape[1]), np.uint8)
    for y in range(len(bright)):
        line, light, u, v = words[y], bright[y], blue[y % 2], red[y % 2]
        for x in range(len(line)):
            r, g, b = I32(line[x] & U32(255)), I32((line[x] >> U32(8)) & U32(255)), I32((line[x] >> U32(16)) & U32(255))
            light[x] = I32(r * 19595 + g * 38470 + b * 7471 + 32768) >> I32(16)
            u[x] = I32(b * 32768 - r * 11059 - g * 21709 + MIDDLE) >> I32(16)
            v[x] = I32(r * 32768 - g * 27439 - b * 5329 + MIDDLE) >> I32(16)
        if y % 2:
            _halve(blue, color[0, y // 2])
            _halve(red, color[1, y // 2])


@cached_njit()
def _halve(rows: np.ndarray, out: np.ndarray) -> None:
    """Write means of four, rounded down and up in turn."""
    above, below = rows[0], rows[1]
    for x in range(len(out)):
        four = I32(above[2 * x]) + I32(above[2 * x + 1]) + I32(below[2 * x]) + I32(below[2 * x + 1])
        out[x] = I32(four + 1 + (x & 1)) >> I32(2)


@cached_njit()
def _forward_rows(plane: np.ndarray, out: np.ndarray) -> None:
    for top in range(0, len(plane), 8):
        _forward(plane[top : top + 8], out[top : top + 8], 11, 8 * 128)


@cached_njit()
def _backward_rows(plane: np.ndarray, out: np.ndarray) -> None:
    rows = np.empty((8, plane.shape[1]), np.int16)
    for top in range(0, len(plane), 8):
        _backward(plane[top : top + 8], rows, 18, 128)
        for y in range(8):
            line, target = rows[y], out[top + y]
            for x in range(len(line)):
                target[x] = min(max(line[x], I16(0)), I16(255))


@cached_njit()
def _divide_columns(plane: np.ndarray, table: np.ndarray, inverse: np.ndarray) -> None:
    """Transform down the columns, divide and multiply by the table, and transform back, in place."""
    rows = np.empty((8, plane.shape[1]), np.int16)
    for top in range(0, len(plane), 8):
        _forward(plane[top : top + 8], rows, 15, 0)
        for y in range(8):
            line, by, share = rows[y], table[y], inverse[y]
            for x in range(len(line)):
                whole = I32((F32(abs(line[x]) + 4 * by[x]) + F32(0.5)) * share[x]) * I32(by[x])
                line[x] = whole if line[x] >= 0 else -whole
        _backward(rows, plane[top : top + 8], 11, 0)


@cached_njit()
def _forward(x: np.ndarray, out: np.ndarray, bits: int, level: int) -> None:
    """Transform eight rows, which become eight frequencies; drop `bits` bits, rounded."""
    half, drop, offset = I32(1 << (bits - 1)), I32(bits), I32(level)
    x0, x1, x2, x3, x4, x5, x6, x7 = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    f0, f1, f2, f3, f4, f5, f6, f7 = out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7]
    for i in range(x.shape[1]):
        outer, inner = I32(I32(x0[i]) + I32(x7[i])), I32(I32(x3[i]) + I32(x4[i]))
        second, third = I32(I32(x1[i]) + I32(x6[i])), I32(I32(x2[i]) + I32(x5[i]))
        a, b, c, d = I32(outer + inner), I32(second + third), I32(outer - inner), I32(second - third)
        f0[i] = I32((a + b - offset) * 8192 + half) >> drop
        f4[i] = I32((a - b) * 8192 + half) >> drop
        f2[i] = I32(c * (TURN + MORE) + d * TURN + half) >> drop
        f6[i] = I32(c * TURN + d * (TURN - LESS) + half) >> drop
        a, b = I32(I32(x3[i]) - I32(x4[i])), I32(I32(x2[i]) - I32(x5[i]))
        c, d = I32(I32(x1[i]) - I32(x6[i])), I32(I32(x0[i]) - I32(x7[i]))
        f7[i] = I32(_odd(a, b, c, d, 0) + half) >> drop
        f5[i] = I32(_odd(a, b, c, d, 1) + half) >> drop
        f3[i] = I32(_odd(a, b, c, d, 2) + half) >> drop
        f1[i] = I32(_odd(a, b, c, d, 3) + half) >> drop


@cached_njit()
def _backward(f: np.ndarray, out: np.ndarray, bits: int, level: int) -> None:
    """Transform eight frequencies back to eight rows."""
    half, drop = I32((1 << (bits - 1)) + (level << bits)), I32(bits)
    f0, f1, f2, f3, f4, f5, f6, f7 = f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]
    x0, x1, x2, x3, x4, x5, x6, x7 = out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7]
    for i in range(f.shape[1]):
        two, six = I32(f2[i]), I32(f6[i])
        plus, minus = I32((I32(f0[i]) + I32(f4[i])) * 8192 + half), I32((I32(f0[i]) - I32(f4[i])) * 8192 + half)
        outer, inner = I32(two * (TURN + MORE) + six * TURN), I32(two * TURN + six * (TURN - LESS))
        a, b, c, d = I32(f7[i]), I32(f5[i]), I32(f3[i]), I32(f1[i])
        odd = _odd(a, b, c, d, 3)
        x0[i], x7[i] = I32(plus + outer + odd) >> drop, I32(plus + outer - odd) >> drop
        odd = _odd(a, b, c, d, 2)
        x1[i], x6[i] = I32(minus + inner + odd) >> drop, I32(minus + inner - odd) >> drop
        odd = _odd(a, b, c, d, 1)
        x2[i], x5[i] = I32(minus - inner + odd) >> drop, I32(minus - inner - odd) >> drop
        odd = _odd(a, b, c, d, 0)
        x3[i], x4[i] = I32(plus - outer + odd) >> drop, I32(plus - outer - odd) >> drop


@cached_njit(inline="always")
def _odd(a: np.int32, b: np.int32, c: np.int32, d: np.int32, row: int) -> np.int32:
    return I32(a * ODD[row][0] + b * ODD[row][1] + c * ODD[row][2] + d * ODD[row][3])


@cached_njit()
def _enlarge(small: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Double the rows of two planes, and make of each column a left and a right one."""
    last_row, last = small.shape[1] - 1, small.shape[2] - 1
    column = np.empty(last + 3, np.int16)  # the first and the last twice
    for plane in range(2):
        for y in range(2 * last_row + 2):
            near, other = small[plane, y // 2], small[plane, min(max(y // 2 + (1 if y % 2 else -1), 0), last_row)]
            for x in range(last + 1):
                column[x + 1] = I16(3) * I16(near[x]) + I16(other[x])
            column[0], column[last + 2] = column[1], column[last + 1]
            before, own, behind = column[: last + 1], column[1:], column[2:]
            a, b = left[plane, y], right[plane, y]
            for x in range(last + 1):
                a[x] = I32(3 * I32(own[x]) + I32(before[x]) + 8) >> I32(4)
                b[x] = I32(3 * I32(own[x]) + I32(behind[x]) + 7) >> I32(4)


@cached_njit()
def _to_rgb(bright: np.ndarray, blue: np.ndarray, red: np.ndarray, words: np.ndarray) -> None:
    for y in range(len(words)):
        light, u, v, line = bright[y], blue[y], red[y], words[y]
        for x in range(len(line)):
            own, b, r = I32(light[x]), I32(u[x]) - I32(128), I32(v[x]) - I32(128)
            first = I32(own + (I32(r * 91881 + 32768) >> I32(16)))
            second = I32(own + (I32(32768 - b * 22554 - r * 46802) >> I32(16)))
            third = I32(own + (I32(b * 116130 + 32768) >> I32(16)))
            line[x] = U32(_byte(first)) | (U32(_byte(second)) << U32(8)) | (U32(_byte(third)) << U32(16))


@cached_njit(inline="always")
def _byte(value: np.int32) -> np.int32:
    return min(max(value, I32(0)), I32(255))
