"""Random numbers of one image at a time.

Every image has a key of its own, and a number is a function of (key, corruption, purpose, position): nothing is carried
from one image to the next, so an image is corrupted in the same way alone, in a batch, in any order and by any worker.
"""

from __future__ import annotations

import math

import numpy as np

from driftline.jit import cached_njit
from driftline.seeds import Seed

ROUNDING_GUARD = np.float32(2**-10)
"""Added to a filtered value before it is cut to a whole number, so that what is whole but for rounding error stays."""


def keys_for(keys: np.ndarray, name: str) -> np.ndarray:
    """Return the keys of the images for one corruption, from their own keys."""
    return keys ^ np.uint64(Seed(0).child("corruption", name).value)


U32, U64 = np.uint32, np.uint64


@cached_njit(inline="always")
def stream_words(key: np.uint64, purpose: int) -> tuple[np.uint32, np.uint32]:
    """Return two words that name the random numbers of an image for one purpose."""
    x = U64(key) + U64(purpose + 1) * U64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    x = x ^ (x >> U64(31))
    return U32(x), U32(x >> U64(32))


@cached_njit(inline="always")
def random_bits(i: int, low: np.uint32, high: np.uint32) -> np.uint32:
    """Return the i-th 32 random bits of a stream; written to be vectorized."""
    x = U32(U32(i) * U32(0x9E3779B9) + low)
    x = U32(U32(x ^ (x >> U32(16))) * U32(0x21F0AAAD))
    x = U32(U32(x ^ (x >> U32(15))) + high)
    x = U32(U32(x ^ (x >> U32(13))) * U32(0x735A2D97))
    return U32(x ^ (x >> U32(15)))


@cached_njit(inline="always")
def random_uniform(i: int, low: np.uint32, high: np.uint32) -> float:
    """Return the i-th number of a stream, uniform between 0 and 1, both excluded."""
    return (np.float64(random_bits(i, low, high)) + 0.5) * 2.0**-32


CHUNK = 512  # pairs of numbers that are made at a time, step by step, so that each step is vectorized
LOG_2, ROOT_HALF = math.log(2), 0x3FE6A09E667F3BCD  # the bits of the square root of 1/2
# Series, highest power first: log((1 + f) / (1 - f)) / f in f squared; sine and cosine of x right angles in x squared.
LOG = tuple(2 / (2 * k + 1) for k in range(10, -1, -1))
SINE = tuple((-1) ** k * (math.pi / 2) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(8, -1, -1))
COSINE = tuple((-1) ** k * (math.pi / 2) ** (2 * k) / math.factorial(2 * k) for k in range(8, -1, -1))


@cached_njit()
def standard_normals(count: int, low: np.uint32, high: np.uint32) -> np.ndarray:
    """Return standard normal numbers of a stream, by Box and Muller: two of two uniform ones."""
    drawn = np.empty((-(-count // 2), 2), np.float32)
    radius, angle = np.empty(CHUNK), np.empty(CHUNK)
    for start in range(0, len(drawn), CHUNK):
        pairs = drawn[start : start + CHUNK]
        for i in range(len(pairs)):
            radius[i] = random_uniform(2 * (start + i), low, high)
            angle[i] = random_uniform(2 * (start + i) + 1, low, high)
        _to_radius(radius[: len(pairs)])
        _to_pairs(radius, angle, pairs)
    return drawn.reshape(-1)[:count]


@cached_njit()
def _to_radius(uniform: np.ndarray) -> None:
    """Replace u by sqrt(-2 log u); the logarithm is that of a mantissa close to 1, and of a power of 2."""
    mantissa = np.empty(len(uniform))
    words, bits = uniform.view(np.int64), mantissa.view(np.int64)
    powers = np.empty(len(uniform), np.int64)
    for i in range(len(uniform)):
        powers[i] = (words[i] - ROOT_HALF) >> 52
        bits[i] = words[i] - (powers[i] << 52)
    for i in range(len(uniform)):
        f = (mantissa[i] - 1) / (mantissa[i] + 1)
        uniform[i] = np.sqrt(-2.0 * (powers[i] * LOG_2 + f * _series(LOG, f * f)))


@cached_njit()
def _to_pairs(radius: np.ndarray, turns: np.ndarray, pairs: np.ndarray) -> None:
    """Set pairs to the point at a radius and an angle in turns, from the closest right angle."""
    across, up = np.empty(len(pairs), np.float32), np.empty(len(pairs), np.float32)
    for i in range(len(pairs)):
        nearest = np.floor(4 * turns[i] + 0.5)
        rest, quarter = 4 * turns[i] - nearest, np.int32(nearest)
        sine, cosine = rest * _series(SINE, rest * rest), _series(COSINE, rest * rest)
        x, y = (sine if quarter & 1 else cosine), (cosine if quarter & 1 else sine)
        across[i] = radius[i] * (-x if (quarter + 1) & 2 else x)
        up[i] = radius[i] * (-y if quarter & 2 else y)
    for i in range(len(pairs)):
        pairs[i, 0], pairs[i, 1] = across[i], up[i]


@cached_njit(inline="always")
def _series(terms: tuple[float, ...], x: float) -> float:
    total = 0.0
    for term in terms:
        total = total * x + term
    return total
