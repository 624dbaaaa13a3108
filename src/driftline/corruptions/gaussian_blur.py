"""Gaussian blur of bytes: a corruption of its own, and a part of others."""

from __future__ import annotations

import cv2
import numpy as np

from driftline.corruptions.convolution import pairs_of, sum_both_ways
from driftline.corruptions.severity import Parameters


def gaussian_blur(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Blur by a Gaussian that is cut off at 4 sigma; the edge is continued by its own pixels."""
    return blur(images, parameters["sigma"])


def gaussian_weights(sigma: float, cut: float) -> np.ndarray:
    """Return a Gaussian at -r .. r, where r is `cut` times sigma, rounded; it sums to 1.

    >>> gaussian_weights(0.1, 4)
    array([1.])
    """
    reach = int(cut * sigma + 0.5)
    if reach == 0:
        return np.ones(1)
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.asarray(bell / bell.sum())


def blur(images: np.ndarray, sigma: float) -> np.ndarray:
    """Return the images blurred and truncated to whole numbers."""
    bell = gaussian_weights(sigma, 4)
    if len(bell) == 1:
        return images.copy()
    weights = pairs_of(bell)
    sides, row = len(weights) - 1, images.shape[2] * 3
    out = np.empty_like(images)
    for image, target in zip(images, out, strict=True):
        wide = cv2.copyMakeBorder(image, 0, 0, sides, sides, cv2.BORDER_REPLICATE)
        sum_both_ways(wide.reshape(len(wide), -1), target.reshape(-1, row), 3, weights)
    return out
