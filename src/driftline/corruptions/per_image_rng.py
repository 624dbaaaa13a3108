"""Random numbers of one image at a time.

Every image has a key of its own, and a number is a function of (key, corruption, purpose, position): nothing is carried
from one image to the next, so an image is corrupted in the same way alone, in a batch, in any order and by any worker.
"""

from __future__ import annotations

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


@cached_njit()
def standard_normals(count: int, low: np.uint32, high: np.uint32) -> np.ndarray:
    """Return standard normal numbers of a stream."""
    drawn = np.empty(count + count % 2, np.float32)
    for i in range(0, count, 2):
        radius = np.sqrt(-2.0 * np.log(random_uniform(i, low, high)))
        angle = 2.0 * np.pi * random_uniform(i + 1, low, high)
        drawn[i], drawn[i + 1] = radius * np.cos(angle), radius * np.sin(angle)
    return drawn[:count]
