"""AugMix: each operation as Pillow computes it, and mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from driftline.training import augmix

pytest.importorskip("PIL")
from PIL import Image, ImageOps

RNG = np.random.default_rng(0)
IMAGES = [RNG.integers(40, 200, (side, side + 3, 3)).astype(np.uint8) for side in (9, 32)]


def affine(data: tuple[float, ...]) -> Callable[[Image.Image], Image.Image]:
    fill = (augmix.GRAY,) * 3
    return lambda image: image.transform(
        image.size, Image.Transform.AFFINE, data, resample=Image.Resampling.BILINEAR, fillcolor=fill
    )


PAIRS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[Image.Image], Image.Image]]] = {
    "autocontrast": (augmix.autocontrast, ImageOps.autocontrast),
    "equalize": (augmix.equalize, ImageOps.equalize),
    "solarize": (lambda x: augmix.solarize(x, 120), lambda image: ImageOps.solarize(image, 120)),
    "posterize": (lambda x: augmix.posterize(x, 3), lambda image: ImageOps.posterize(image, 3)),
    "rotate": (
        lambda x: augmix.rotate(x, 20),
        lambda image: image.rotate(20, resample=Image.Resampling.BILINEAR, fillcolor=(augmix.GRAY,) * 3),
    ),
    "shear": (lambda x: augmix.warp(x, (1, 0.2, 0), (0, 1, 0)), affine((1, 0.2, 0, 0, 1, 0))),
    "translate": (lambda x: augmix.warp(x, (1, 0, 0), (0, 1, -2)), affine((1, 0, 0, 0, 1, -2))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_operations_are_pillows(name: str) -> None:
    ours, theirs = PAIRS[name]
    for image in (*IMAGES, IMAGES[1][:5, :5] // 50, np.full((4, 4, 3), 7, np.uint8)):
        expected = np.array(theirs(Image.fromarray(image)))
        difference = np.abs(ours(image).astype(int) - expected)
        assert difference.max() <= (1 if name in ("rotate", "shear") else 0)
        assert difference.mean() < 0.02


def test_a_mixture_lies_between_its_images_and_depends_on_the_draws() -> None:
    image = np.full((8, 8, 1), 64, np.uint8)
    image[2:6, 2:6] = 180
    copies = [augmix.augmix(image, "pad-crop-flip", np.random.default_rng(k)) for k in range(40)]
    assert all(copy.shape == image.shape and copy.dtype == np.float32 for copy in copies)
    assert 0 <= min(map(np.min, copies)) < 40 < 200 < max(map(np.max, copies)) <= 255  # autocontrast and equalize
    assert len({copy.tobytes() for copy in copies}) == 40
    again = augmix.augmix(image, "pad-crop-flip", np.random.default_rng(3))
    np.testing.assert_array_equal(again, copies[3])


def test_without_chains_it_is_the_crop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of the mixture add up to 1."""
    monkeypatch.setattr(augmix, "OPERATIONS", (lambda image, rng: image,))
    for k in range(5):
        found = augmix.augmix(IMAGES[1], "pad-crop-flip", np.random.default_rng(k))
        crop = augmix.AUGMENTATIONS["pad-crop-flip"](IMAGES[1], 32, 35, np.random.default_rng(k))
        np.testing.assert_allclose(found, crop, atol=1e-3)


def test_three_chains_of_one_to_three_operations_are_mixed_with_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one operation that adds 1, a copy is brighter by (1 - share) times the mean length of its chains."""
    monkeypatch.setattr(augmix, "OPERATIONS", (lambda image, rng: image + np.uint8(1),))
    image = np.full((8, 8, 3), 100, np.uint8)
    added = np.array([augmix.augmix(image, "crop-flip", np.random.default_rng(k))[0, 0, 0] - 100 for k in range(1000)])
    assert added.min() >= 0
    assert 2 < added.max() < 3  # all of 3, 3 and 3 and nothing of the image is as good as never drawn
    assert added.mean() == pytest.approx(1, abs=4 * added.std() / 1000**0.5)  # .5 of the mean length, 2


@pytest.mark.parametrize(
    ("number", "possible"),
    [
        (2, lambda image: [augmix.rotate(image, degrees) for degrees in (-2, -1, 0, 1, 2)]),
        (3, lambda image: [augmix.solarize(image, threshold) for threshold in range(231, 255)]),
        (6, lambda image: [augmix.warp(image, (1, 0, by), (0, 1, 0)) for by in (-2, -1, 0, 1, 2)]),
        (7, lambda image: [augmix.warp(image, (1, 0, 0), (0, 1, by)) for by in (-2, -1, 0, 1, 2)]),
        (8, lambda image: [image & 0b11110000]),
    ],
)
def test_operations_are_as_strong_as_at_level_1(number: int, possible: Any) -> None:
    image = np.random.default_rng(0).integers(0, 256, (90, 90, 3), dtype=np.uint8)
    expected = {made.tobytes() for made in possible(image)}
    made = {augmix.OPERATIONS[number](image, np.random.default_rng(k)).tobytes() for k in range(400)}
    assert made == expected
