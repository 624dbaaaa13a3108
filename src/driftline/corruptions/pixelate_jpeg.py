"""Pixelate and JPEG, with the results of Pillow, as ImageNet-C defines them."""

from __future__ import annotations

import numpy as np

from driftline.corruptions.jpeg_pixels import compressed
from driftline.corruptions.resample import resample
from driftline.corruptions.severity import Parameters


def pixelate(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Shrink by means over boxes, and enlarge by boxes again."""
    height, width = images.shape[1:3]
    small = (shrunk_side(height, parameters["scale"]), shrunk_side(width, parameters["scale"]))
    out = np.empty_like(images)
    for image, target in zip(images, out, strict=True):
        target[:] = resample(resample(image, *small, "box"), height, width, "box")
    return out


def shrunk_side(side: int, scale: float) -> int:
    """Return the side of the shrunk image, rounded down.

    >>> shrunk_side(224, 0.3)
    67
    """
    return int(side * scale)


def jpeg(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Compress as JPEG, with colors at half the resolution."""
    return each_compressed(images, rounded_quality(parameters["quality"]))


def each_compressed(images: np.ndarray, quality: int) -> np.ndarray:
    """Return images as JPEG of a quality shows them."""
    return np.stack([compressed(image, quality) for image in images])


def rounded_quality(quality: float) -> int:
    """Return the quality as a whole number; a half is rounded to the even one.

    >>> rounded_quality(21.5), rounded_quality(16.5)
    (22, 16)
    """
    return round(quality)
