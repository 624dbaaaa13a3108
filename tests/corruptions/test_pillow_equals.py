"""Resizing and JPEG without Pillow, against Pillow to the bit."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from driftline.corruptions.jpeg_pixels import compressed
from driftline.corruptions.resample import resample

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only

FILTERS = {"box": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR}


def images(height: int, width: int, photo: np.ndarray) -> list[np.ndarray]:
    rng = np.random.default_rng(height)
    noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return [photo[:height, :width], noise, noise // 128 * 255]


@pytest.mark.parametrize("by", ["box", "bilinear"])
@pytest.mark.parametrize(
    ("old", "new"), [((150, 180), (224, 224)), ((224, 200), (60, 33)), ((33, 40), (33, 90)), ((90, 40), (32, 40))]
)
def test_resizing_is_pillows(by: str, old: tuple[int, int], new: tuple[int, int], photos: np.ndarray) -> None:
    for image in images(*old, photos[0]):
        # In two steps, because releases of Pillow differ in which comes first.
        across = Image.fromarray(image).resize((new[1], old[0]), FILTERS[by])
        expected = np.asarray(across.resize((new[1], new[0]), FILTERS[by]))
        np.testing.assert_array_equal(resample(image, *new, by), expected)  # type: ignore[arg-type]


def test_channels_are_resized_alone(photos: np.ndarray) -> None:
    image = photos[0, :50, :60]
    for new in ((20, 60), (50, 33), (20, 33)):
        alone = [resample(image[..., k : k + 1], *new, "bilinear") for k in range(3)]
        np.testing.assert_array_equal(np.concatenate(alone, axis=2), resample(image, *new, "bilinear"))


def test_a_part_of_an_image_is_resized_without_the_rest(photos: np.ndarray) -> None:
    part = photos[0, 10:120, 30:160]
    np.testing.assert_array_equal(resample(part, 64, 64, "bilinear"), resample(part.copy(), 64, 64, "bilinear"))
    across_first = resample(part, 40, 64, "bilinear")
    down_first = resample(resample(part, 40, 130, "bilinear"), 40, 64, "bilinear")
    assert (across_first != down_first).any(), "the order matters, by rounding"
    assert np.abs(across_first.astype(int) - down_first).max() <= 1


@pytest.mark.parametrize("shape", [(32, 32), (47, 50), (33, 57), (49, 47)])
@pytest.mark.parametrize("quality", [1, 7, 25, 50, 85, 100])
def test_jpeg_is_pillows(shape: tuple[int, int], quality: int, photos: np.ndarray) -> None:
    for image in images(*shape, photos[1]):
        stored = io.BytesIO()
        Image.fromarray(image).save(stored, "JPEG", quality=quality)
        np.testing.assert_array_equal(compressed(image, quality), np.asarray(Image.open(stored)))
