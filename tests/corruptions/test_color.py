"""Brightness, contrast, saturation, pixelate and JPEG, against slow and independent routes."""

from __future__ import annotations

import colorsys
import io

import numpy as np
import pytest
from PIL import Image

from driftline.corruptions import corrupt, parameters

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only


def through_hsv(image: np.ndarray, change) -> np.ndarray:  # type: ignore[no-untyped-def]
    pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel))) for pixel in image.reshape(-1, 3) / 255]
    return np.uint8(np.clip(np.array(pixels), 0, 1) * 255).reshape(image.shape)


def colours() -> np.ndarray:
    """All kinds of colours, with black, white and greys."""
    rng = np.random.default_rng(3)
    image = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    image[:8] = np.arange(512).reshape(8, 64, 1) // 2
    image[8] = 0
    return image


@pytest.mark.parametrize("severity", [0.5, 1, 3, 5])
def test_brightness_is_a_larger_value_in_hsv(severity: float, keys: np.ndarray) -> None:
    image, more = colours(), parameters("brightness", severity)["dV"]
    found = corrupt(image[None], "brightness", severity, keys[:1])[0]
    slow = through_hsv(image, lambda h, s, v: (h, s, min(v + more, 1)))
    assert np.abs(found.astype(int) - slow).max() <= 1
    assert (found == slow).mean() > 0.99
    assert (found[8] == int(255 * more)).all(), "black becomes grey"
    brighter = image / 255 + more
    assert (found != np.uint8(np.clip(brighter, 0, 1) * 255)).mean() > 0.3, "it is not a sum in every channel"


@pytest.mark.parametrize("severity", [0.25, 3, 5])
def test_contrast_is_drawn_to_the_mean_of_each_channel(severity: float, photos: np.ndarray, keys: np.ndarray) -> None:
    factor = parameters("contrast", severity)["factor"]
    x = photos / 255
    mean = x.mean(axis=(1, 2), keepdims=True)
    found = corrupt(photos, "contrast", severity, keys[:3])
    np.testing.assert_array_equal(found, np.uint8(np.clip((x - mean) * factor + mean, 0, 1) * 255))
    grey = x.mean(axis=(1, 2, 3), keepdims=True)
    assert not np.array_equal(found, np.uint8(np.clip((x - grey) * factor + grey, 0, 1) * 255)), (
        "one mean for all channels"
    )


@pytest.mark.parametrize("severity", [1, 2.5, 3, 4, 5])
def test_saturation_is_changed_in_hsv(severity: float, keys: np.ndarray) -> None:
    image, p = colours(), parameters("saturate", severity)
    found = corrupt(image[None], "saturate", severity, keys[:1])[0]
    slow = through_hsv(image, lambda h, s, v: (h, min(max(p["factor"] * s + p["offset"], 0), 1), v))
    assert np.abs(found.astype(int) - slow).max() <= 1
    assert (found == slow).mean() > 0.97, "with a factor of 2 all numbers are whole, but for rounding error"


def test_grey_turns_reddish_where_saturation_has_an_offset(keys: np.ndarray) -> None:
    grey = np.full((1, 64, 64, 3), 100, np.uint8)
    assert corrupt(grey, "saturate", 5, keys[:1])[0, 0, 0].tolist() == [100, 80, 80]
    np.testing.assert_array_equal(corrupt(grey, "saturate", 3, keys[:1]), grey)


def test_pixelate_shrinks_and_enlarges_by_boxes(photos: np.ndarray, keys: np.ndarray) -> None:
    for severity, side in ((1, 134), (1.25, 128), (3, 89), (5, 56)):
        found = corrupt(photos[:1], "pixelate", severity, keys[:1])[0]
        small = Image.fromarray(photos[0]).resize((side, side), Image.Resampling.BOX)
        np.testing.assert_array_equal(found, np.asarray(small.resize((224, 224), Image.Resampling.BOX)))
        other = (found != np.asarray(small.resize((224, 224), Image.Resampling.NEAREST))).any(axis=-1).mean()
        assert (other > 0.15) == (side == 128), "boxes and nearest pixels differ at one size only"


def test_pixelate_at_a_quarter_of_the_side_is_the_mean_of_sixteen_pixels(photos: np.ndarray, keys: np.ndarray) -> None:
    found = corrupt(photos, "pixelate", 5, keys[:3])
    blocks = photos.reshape(3, 56, 4, 56, 4, 3).mean(axis=(2, 4))
    assert np.abs(found[:, ::4, ::4] - blocks).max() <= 1
    np.testing.assert_array_equal(found, found[:, ::4, ::4].repeat(4, axis=1).repeat(4, axis=2))


def test_jpeg_is_pillows_with_the_rounded_quality(photos: np.ndarray, keys: np.ndarray) -> None:
    for severity, quality in ((1.5, 22), (2.5, 16), (3, 15), (4.5, 8)):
        stored = io.BytesIO()
        Image.fromarray(photos[0]).save(stored, "JPEG", quality=quality, subsampling="4:2:0")
        found = corrupt(photos[:1], "jpeg", severity, keys[:1])[0]
        np.testing.assert_array_equal(found, np.asarray(Image.open(stored)))


def test_spatter_of_water_brightens_and_mud_browns(photos: np.ndarray, keys: np.ndarray) -> None:
    image = photos // 2
    water = corrupt(image, "spatter", 3, keys[:3]).astype(int) - image
    assert water.min() >= 0
    wet = water.max(axis=-1) > 20
    assert 0.02 < wet.mean() < 0.6
    assert water[wet][:, 0].mean() < 0.8 * water[wet][:, 1].mean(), "there is less red in it than green"
    mud = corrupt(image, "spatter", 5, keys[:3])
    covered = (mud != image).any(axis=-1)
    assert 0.05 < covered.mean() < 0.8, "between the drops nothing is changed"
    off = np.abs(mud.astype(int) - [63, 42, 20]).max(axis=-1)
    assert off[covered].max() <= np.ceil(0.2 * np.abs(image.astype(int) - [63, 42, 20]).max()), "mud covers .8 or more"
