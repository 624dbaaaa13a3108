"""Noise: Gaussian, shot (Poisson), impulse and speckle.

A byte u with noise n is cut to a whole number, and floor(u + n) = u + floor(n). So noise on bytes has finitely many
outcomes, and we draw them from their exact probabilities by the alias method: one table for all bytes if the noise does
not depend on u, one per value of u otherwise. A draw uses 32 bits, so a probability is met within 1e-8; no tail is cut.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import gammaincc, ndtr

from driftline.corruptions.per_image_rng import U32, random_bits, stream_words
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit

CHUNK = 1024  # elements for which bits are made at a time, so that they stay close to the processor


def gaussian_noise(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Add N(0, sigma) to every element, of images from 0 to 1."""
    noisy = np.empty_like(images)
    _add(images.reshape(len(images), -1), noisy.reshape(len(images), -1), keys, _offsets(parameters["sigma"]))
    return noisy


def shot_noise(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Replace x by Poisson(lambda x) / lambda."""
    return _by_level(images, keys, *_shot_tables(1 / parameters["inv_lambda"]))


def speckle_noise(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Add x N(0, sigma) to every element x."""
    return _by_level(images, keys, *_speckle_tables(parameters["sigma"]))


def impulse_noise(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Make an element black or white with probability `amount`; each channel by itself, not whole pixels."""
    noisy = np.empty_like(images)
    half = int(parameters["amount"] / 2 * 2**32)
    _add_impulses(
        images.reshape(len(images), -1), noisy.reshape(len(images), -1), keys, U32(half), U32(2**32 - 1 - half)
    )
    return noisy


def _by_level(images: np.ndarray, keys: np.ndarray, values: np.ndarray, tables: np.ndarray) -> np.ndarray:
    noisy = np.empty_like(images)
    shift = U32(32 - int(tables.shape[1]).bit_length() + 1)
    _replace(images.reshape(len(images), -1), noisy.reshape(len(images), -1), keys, values, tables, shift)
    return noisy


@lru_cache(maxsize=64)
def _offsets(sigma: float) -> np.ndarray:
    """Return the alias table of floor(255 N(0, sigma)) + 256; beyond -255 and 255 every byte is black or white."""
    edges = np.arange(-254, 256) / (255 * sigma)
    below = np.concatenate([[0.0, 0.0], ndtr(edges), [1.0]])  # offset -256 is never needed
    return alias(np.diff(below), 9)


@lru_cache(maxsize=64)
def _shot_tables(rate: float) -> tuple[np.ndarray, np.ndarray]:
    values = np.unique(((np.arange(256) + 1) * rate / 255).astype(np.int64))
    counts = np.unique((values[:, None] + np.arange(-2, 3)).clip(0))
    shown = (np.clip(counts / rate, 0, 1) * 255).astype(np.uint8)  # the cut as it is made of floats of 64 bits
    values = np.unique(shown)
    last = counts[np.searchsorted(shown, values, side="right") - 1].astype(float)  # the largest count shown so
    last[-1] = np.inf
    cumulative = gammaincc(np.minimum(last, 1e300) + 1, rate * np.arange(256)[:, None] / 255)
    cumulative[:, -1] = 1
    return _padded(values), _level_tables(cumulative)


@lru_cache(maxsize=64)
def _speckle_tables(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    level = np.arange(1, 256)[:, None]
    cumulative = np.ones((256, 256))  # black stays black
    cumulative[1:] = ndtr((np.arange(1, 257) - level) / (level * sigma))
    cumulative[:, -1] = 1
    return _padded(np.arange(256, dtype=np.uint8)), _level_tables(cumulative)


def _padded(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, np.zeros(256 - len(values), np.uint8)])


def _level_tables(cumulative: np.ndarray) -> np.ndarray:
    size = max(int(cumulative.shape[1] - 1).bit_length(), 1)
    return np.stack([alias(np.diff(row, prepend=0.0), 8, size) for row in cumulative])


def alias(probabilities: np.ndarray, low: int, size: int | None = None) -> np.ndarray:
    """Return an alias table of 2**size words: the other outcome (`low` bits) below a threshold (the other bits).

    A draw takes a column and keeps it if a fraction of 32 - `low` bits is below the threshold.
    """
    columns = 2 ** (low if size is None else size)
    weights = np.zeros(columns)
    weights[: len(probabilities)] = probabilities
    thresholds, others = _alias(weights * columns / weights.sum())
    most = 2 ** (32 - low) - 1
    words = (thresholds * most).round().astype(np.uint32).clip(0, most) << np.uint32(low)
    return np.asarray(words | others.astype(np.uint32))


@cached_njit()
def _alias(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of weight 1 on average, each shared by at most two outcomes."""
    count = len(weights)
    others = np.arange(count)
    poor, rich = np.empty(count, np.int64), np.empty(count, np.int64)
    n_poor = n_rich = 0
    for i in range(count):
        if weights[i] < 1:
            poor[n_poor] = i
            n_poor += 1
        else:
            rich[n_rich] = i
            n_rich += 1
    while n_poor > 0 and n_rich > 0:
        n_poor -= 1
        i, j = poor[n_poor], rich[n_rich - 1]
        others[i] = j
        weights[j] -= 1 - weights[i]
        if weights[j] < 1:
            n_rich -= 1
            poor[n_poor] = j
            n_poor += 1
    for i in range(n_poor):  # what rounding error has left over
        weights[poor[i]] = 1
    for i in range(n_rich):
        weights[rich[i]] = 1
    return weights, others


@cached_njit()
def _add(images: np.ndarray, noisy: np.ndarray, keys: np.ndarray, table: np.ndarray) -> None:
    for n in range(len(images)):
        low, high = stream_words(keys[n], 0)
        _add_to_one(images[n], noisy[n], low, high, table)


@cached_njit()
def _add_to_one(image: np.ndarray, noisy: np.ndarray, low: np.uint32, high: np.uint32, table: np.ndarray) -> None:
    words = np.empty(CHUNK, np.uint32)
    for start in range(0, len(image), CHUNK):
        count = min(CHUNK, len(image) - start)
        clean, out = image[start : start + count], noisy[start : start + count]
        for i in range(count):
            words[i] = random_bits(start + i, low, high)
        for i in range(count):
            word = words[i]
            column = U32(word >> U32(23))
            entry = table[column]
            other = U32(0) - U32((word & U32(0x7FFFFF)) >= (entry >> U32(9)))  # all ones: the other outcome
            words[i] = U32(column ^ (other & (U32(column ^ entry) & U32(511))))
        for i in range(count):
            moved = np.int32(clean[i]) + np.int32(words[i]) - np.int32(256)
            out[i] = np.uint8(min(max(moved, np.int32(0)), np.int32(255)))


@cached_njit()
def _replace(
    images: np.ndarray, noisy: np.ndarray, keys: np.ndarray, values: np.ndarray, tables: np.ndarray, shift: np.uint32
) -> None:
    for n in range(len(images)):
        low, high = stream_words(keys[n], 0)
        _replace_one(images[n], noisy[n], low, high, values, tables.reshape(-1), U32(tables.shape[1]), shift)


@cached_njit()
def _replace_one(
    image: np.ndarray,
    noisy: np.ndarray,
    low: np.uint32,
    high: np.uint32,
    values: np.ndarray,
    tables: np.ndarray,
    columns: np.uint32,
    shift: np.uint32,
) -> None:
    words = np.empty(CHUNK, np.uint32)
    for start in range(0, len(image), CHUNK):
        count = min(CHUNK, len(image) - start)
        clean, out = image[start : start + count], noisy[start : start + count]
        for i in range(count):
            words[i] = random_bits(start + i, low, high)
        for i in range(count):
            word = words[i]
            column = U32(word >> shift)
            entry = tables[U32(clean[i]) * columns + column]
            other = U32(0) - U32((word & U32(0xFFFFFF)) >= (entry >> U32(8)))
            out[i] = values[U32(column ^ (other & (U32(column ^ entry) & U32(255))))]


@cached_njit()
def _add_impulses(images: np.ndarray, noisy: np.ndarray, keys: np.ndarray, black: np.uint32, white: np.uint32) -> None:
    for n in range(len(images)):
        low, high = stream_words(keys[n], 0)
        clean, out = images[n], noisy[n]
        for i in range(len(clean)):
            word, value = random_bits(i, low, high), clean[i]  # read in any case: without a branch, eight at a time
            value = np.uint8(0) if word < black else value
            out[i] = np.uint8(255) if word > white else value
