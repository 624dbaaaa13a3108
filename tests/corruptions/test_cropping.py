"""Parts of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from driftline.corruptions.cropping import (
    center_crop,
    decode_image,
    largest_box,
    random_box,
    random_crop,
    resize,
)
from driftline.errors import UserError

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only


def test_boxes_have_the_areas_and_shapes_that_are_asked_for() -> None:
    rng = np.random.default_rng(0)
    boxes = np.array([random_box(400, 500, rng) for _ in range(4000)])
    top, left, height, width = boxes.T
    assert (top + height <= 400).all()
    assert (left + width <= 500).all()
    area, aspect = height * width / 200_000, width / height
    assert 0.078 < area.min() < 0.09
    assert area.max() <= 1
    assert aspect.min() > 0.74
    assert aspect.max() < 1.35
    small = area < 0.5  # every shape of these fits, so they are drawn evenly: area, and logarithm of the aspect
    assert np.abs(np.histogram(area[small], 6, (0.08, 0.5))[0] / small.sum() - 1 / 6).max() < 0.03
    log = np.log(aspect[small])
    assert np.abs(np.histogram(log, 4, (np.log(3 / 4), np.log(4 / 3)))[0] / small.sum() - 1 / 4).max() < 0.04


def test_a_narrow_image_falls_back_to_its_centre() -> None:
    assert largest_box(1000, 10) == (493, 0, 13, 10)
    assert largest_box(10, 1000) == (0, 493, 10, 13)
    assert largest_box(300, 300) == (0, 0, 300, 300)
    boxes = {random_box(2000, 40, np.random.default_rng(seed)) for seed in range(50)}
    assert (973, 0, 53, 40) in boxes


def test_a_part_depends_on_its_key_alone_and_half_are_flipped() -> None:
    ramp = np.broadcast_to(np.arange(200, dtype=np.uint8)[None, :, None], (150, 200, 3))
    parts = [random_crop(ramp, key, 32) for key in range(400)]
    np.testing.assert_array_equal(parts[7], random_crop(ramp, 7, 32))
    assert all(part.shape == (32, 32, 3) and part.flags.c_contiguous for part in parts)
    flipped = np.mean([int(part[0, 0, 0]) > int(part[0, -1, 0]) for part in parts])
    assert flipped == pytest.approx(0.5, abs=0.1)


def test_stretching_is_pillows_and_counts_every_pixel_when_it_shrinks(photos: np.ndarray) -> None:
    lines = np.zeros((64, 64, 3), np.uint8)
    lines[:, ::4] = 200
    assert np.abs(resize(lines, 8, 8).astype(int) - 50).max() <= 13, "without antialiasing it would be 0 or 200"
    found = resize(photos[0, 10:150, 20:220], 224, 224)
    slow = Image.fromarray(photos[0]).crop((20, 10, 220, 150)).resize((224, 224), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(found, np.asarray(slow))


def test_the_centre_is_that_of_the_resized_image() -> None:
    tall = np.broadcast_to((np.arange(512) // 2).astype(np.uint8)[:, None, None], (512, 256, 3))
    middle = center_crop(tall)
    assert middle.shape == (224, 224, 3)
    np.testing.assert_array_equal(middle[:, 0, 0], tall[144:368, 0, 0])
    assert center_crop(np.zeros((300, 500, 3), np.uint8)).shape == (224, 224, 3)


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("not an image")
    with pytest.raises(UserError, match=r"cannot read .*text\.jpg: expected a picture"):
        decode_image(tmp_path / "text.jpg")
    with pytest.raises(UserError, match="cannot read an image in memory: expected a picture"):
        decode_image(b"123")
