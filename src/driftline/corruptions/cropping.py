"""Crop photographs to one size: random crops with flips, or the center.

A stream of CCC shows a random part of each image, stretched to 224 pixels (`random_crop`); its calibration, like
ImageNet-C, shows the center (`center_crop`). Both shrink with antialiasing, as Pillow does.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from driftline.corruptions.corrupt import compiled
from driftline.data import file_errors
from driftline.data.formats import images as pictures
from driftline.seeds import Seed

DEFAULT_SIDE, SHORT_SIDE = 224, 256
AREA_RANGE = (0.08, 1.0)
ASPECT_RANGE = (3 / 4, 4 / 3)
MAX_TRIES = 10

Box = tuple[int, int, int, int]
"""A part of an image: top, left, height, width."""


def random_crop(image: np.ndarray, key: int, side: int = 224) -> np.ndarray:
    """Return a random part of an image of bytes, stretched to a square, and flipped with probability 1/2.

    An image and its key always give the same part. 8 to 100 % of the area, 3:4 to 4:3 in shape.
    """
    rng = Seed(int(key)).child("part").numpy()
    top, left, height, width = random_box(image.shape[0], image.shape[1], rng)
    part = resize(image[top : top + height, left : left + width], side, side)
    return np.asarray(compiled("resample").flipped(part)) if rng.random() < 0.5 else part


def random_box(height: int, width: int, rng: np.random.Generator) -> Box:
    """Return a box of random area and shape; after ten that do not fit, the largest allowed in the center."""
    for _ in range(MAX_TRIES):
        area = height * width * rng.uniform(*AREA_RANGE)
        aspect = math.exp(rng.uniform(math.log(ASPECT_RANGE[0]), math.log(ASPECT_RANGE[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1)), h, w
    return largest_box(height, width)


def largest_box(height: int, width: int) -> Box:
    """Return the largest box in the center whose shape is allowed.

    >>> largest_box(100, 400)
    (0, 133, 100, 133)
    """
    h, w = height, width
    if width / height < ASPECT_RANGE[0]:
        h = round(width / ASPECT_RANGE[0])
    elif width / height > ASPECT_RANGE[1]:
        w = round(height * ASPECT_RANGE[1])
    return (height - h) // 2, (width - w) // 2, h, w


def center_crop(image: np.ndarray) -> np.ndarray:
    """Return the center of 224 pixels of an image of bytes, after its short side is resized to 256."""
    return pictures.to_center(pictures.pil_image_module().fromarray(image), DEFAULT_SIDE, SHORT_SIDE)


def center_crops(images: np.ndarray) -> np.ndarray:
    """Return images as ImageNet-C shows them: `center_crop` of those larger than 224 pixels, others unchanged."""
    return images if min(images.shape[1:3]) <= DEFAULT_SIDE else np.stack([center_crop(image) for image in images])


def resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resize an image of bytes, bilinearly and with antialiasing."""
    return np.asarray(compiled("resample").resample(image, height, width, "bilinear"))


def decode_image(source: Path | str | bytes) -> np.ndarray:
    """Decode an image file, or its bytes, to (height, width, 3) bytes; gray becomes three equal channels."""
    name = Path("an image in memory") if isinstance(source, bytes) else Path(source)
    with file_errors(name, "a picture"), pictures.open_image(source) as picture:
        return np.asarray(picture if picture.mode == "RGB" else picture.convert("RGB"))
