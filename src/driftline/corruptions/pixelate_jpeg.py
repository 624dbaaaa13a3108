"""Pixelate and JPEG, by Pillow, as ImageNet-C defines them."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from driftline.corruptions.severity import Parameters
from driftline.data.formats import images as pictures


def pixelate(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Shrink by means over boxes, and enlarge by boxes again."""
    height, width = images.shape[1:3]
    small = (shrunk_side(width, parameters["scale"]), shrunk_side(height, parameters["scale"]))
    out = np.empty_like(images)
    for image, target in zip(images, out, strict=True):
        shrunk = Image.fromarray(image).resize(small, Image.Resampling.BOX)
        target[:] = shrunk.resize((width, height), Image.Resampling.BOX)
    return out


def shrunk_side(side: int, scale: float) -> int:
    """Return the side of the shrunk image, rounded down.

    >>> shrunk_side(224, 0.3)
    67
    """
    return int(side * scale)


def jpeg(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Store as JPEG, with colors at half the resolution, and read again."""
    quality = rounded_quality(parameters["quality"])
    out = np.empty_like(images)
    for image, target in zip(images, out, strict=True):
        stored = io.BytesIO()
        Image.fromarray(image).save(stored, "JPEG", quality=quality)
        with pictures.open_image(stored.getvalue()) as read:
            target[:] = read
    return out


def rounded_quality(quality: float) -> int:
    """Return the quality as a whole number; a half is rounded to the even one.

    >>> rounded_quality(21.5), rounded_quality(16.5)
    (22, 16)
    """
    return round(quality)
