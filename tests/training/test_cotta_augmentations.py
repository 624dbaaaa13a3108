"""Disturbed copies of images."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from driftline.training import cotta_augmentations as module
from driftline.training.cotta_augmentations import (
    BLUR_RADIUS,
    adjust_color,
    affine_warp,
    cotta_augment,
    gaussian_blur_5x5,
    roid_augment,
    rotate_hue,
)


def images(n: int = 3, channels: int = 3, height: int = 12, width: int = 10) -> Tensor:
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(1))


def inner(x: Tensor) -> Tensor:
    return x[:, :, BLUR_RADIUS:-BLUR_RADIUS, BLUR_RADIUS:-BLUR_RADIUS]


def test_nothing_done_is_the_image_itself() -> None:
    x = images()
    torch.testing.assert_close(inner(affine_warp(x, rotation=0, right=0, down=0, zoom=1)), x)
    torch.testing.assert_close(gaussian_blur_5x5(affine_warp(x, rotation=0, right=0, down=0, zoom=1), 0.001), x)
    for what in ("brightness", "contrast", "saturation", "gamma"):
        torch.testing.assert_close(adjust_color(x, what, 1.0), x)
    torch.testing.assert_close(adjust_color(x, "hue", 0.0), x)


def test_a_push_by_whole_pixels_moves_them_and_stretches_the_edge() -> None:
    x = images()
    pushed = inner(affine_warp(x, rotation=0, right=2 / 10, down=3 / 12, zoom=1))
    torch.testing.assert_close(pushed[:, :, 3:, 2:], x[:, :, :-3, :-2])
    torch.testing.assert_close(pushed[:, :, :3, 2:], x[:, :, :1, :-2].expand(-1, -1, 3, -1))


def test_a_quarter_turn_moves_every_pixel_of_a_square() -> None:
    x = images(height=10, width=10)
    torch.testing.assert_close(inner(affine_warp(x, rotation=90, right=0, down=0, zoom=1)), x.rot90(-1, dims=(2, 3)))


def test_zooming_in_by_two_shows_the_middle() -> None:
    x = torch.arange(8.0).expand(1, 1, 8, 8)
    row = inner(affine_warp(x, rotation=0, right=0, down=0, zoom=2))[0, 0, 0]
    torch.testing.assert_close(row, 3.5 + (torch.arange(8) - 3.5) / 2)


def test_blur_is_the_product_of_two_normalised_gaussians() -> None:
    x = torch.zeros(1, 1, 9, 9)
    x[0, 0, 4, 4] = 1
    weights = np.exp(-(np.arange(-2, 3) ** 2) / (2 * 0.4**2))
    weights /= weights.sum()
    np.testing.assert_allclose(gaussian_blur_5x5(x, 0.4)[0, 0], np.outer(weights, weights), rtol=1e-5, atol=1e-9)


@given(st.tuples(*[st.floats(0, 1)] * 3), st.floats(-0.5, 0.5))
@settings(max_examples=60, deadline=None)
def test_hue_turns_as_in_python(colour: tuple[float, float, float], share: float) -> None:
    hue, saturation, value = colorsys.rgb_to_hsv(*colour)
    expected = colorsys.hsv_to_rgb((hue + share) % 1, saturation, value)
    turned = rotate_hue(torch.tensor(colour, dtype=torch.float64).view(1, 3, 1, 1), share).flatten()
    np.testing.assert_allclose(turned, expected, atol=1e-6)


def test_brightness_contrast_and_saturation_by_their_formulas() -> None:
    x = 0.3 + 0.3 * images()
    grey = (torch.tensor([0.299, 0.587, 0.114])[:, None, None] * x).sum(dim=1, keepdim=True)
    torch.testing.assert_close(adjust_color(x, "brightness", 1.2), 1.2 * x)
    mean = grey.mean(dim=(2, 3), keepdim=True)
    torch.testing.assert_close(adjust_color(x, "contrast", 0.7), 0.7 * x + 0.3 * mean)
    torch.testing.assert_close(adjust_color(x, "saturation", 1.3), 1.3 * x - 0.3 * grey)
    torch.testing.assert_close(adjust_color(x, "gamma", 0.8), x**0.8)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_copy_is_an_image_again_and_the_same_for_the_same_numbers(channels: int) -> None:
    x = images(4, channels)
    one, again, other = (cotta_augment(x, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6))
    assert one.shape == x.shape
    assert torch.equal(one, again)
    assert not torch.allclose(one, other, atol=0.05)
    assert float(one.min()) >= 0
    assert float(one.max()) <= 1
    assert not torch.allclose(one, x, atol=0.05)


def test_one_draw_serves_the_batch_but_for_the_noise() -> None:
    x = 0.5 * images(1).expand(2, -1, -1, -1)
    one, two = cotta_augment(x, torch.Generator().manual_seed(0))
    difference = (one - two).flatten()
    assert 0.003 < float(difference.std()) < 0.01  # sqrt(2) times 0.005
    assert float(difference.abs().max()) < 0.05


def test_what_is_drawn_fills_the_ranges_of_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[float]] = {}

    def noted(**values: float) -> None:
        for name, value in values.items():
            drawn.setdefault(name, []).append(value)

    def placing(x: Tensor, edges: str, **how: float) -> Tensor:
        noted(**how)
        return torch.nn.functional.pad(x, (BLUR_RADIUS,) * 4)

    monkeypatch.setattr(module, "adjust_color", lambda x, what, by: (noted(**{what: by}), x)[1])
    monkeypatch.setattr(module, "affine_warp", placing)
    monkeypatch.setattr(module, "gaussian_blur_5x5", lambda x, sigma: (noted(sigma=sigma), inner(x))[1])
    random = torch.Generator().manual_seed(0)
    for _ in range(400):
        cotta_augment(torch.zeros(1, 3, 4, 4), random)
    ranges = {
        **{"brightness": (0.6, 1.4), "contrast": (0.7, 1.3), "saturation": (0.5, 1.5), "hue": (-0.06, 0.06)},
        **{"gamma": (0.7, 1.3), "rotation": (-15, 15), "right": (-0.125, 0.125), "down": (-0.125, 0.125)},
        **{"zoom": (0.9, 1.1), "sigma": (0.001, 0.5)},
    }
    assert drawn.keys() == ranges.keys()
    for name, (low, high) in ranges.items():
        assert low <= min(drawn[name]) < low + (high - low) / 20, name
        assert high - (high - low) / 20 < max(drawn[name]) <= high, name


def test_roids_copies_are_one_draw_for_the_batch_without_noise_and_reflect_at_the_edges() -> None:
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    x[1] = x[0]
    copies = roid_augment(x, torch.Generator().manual_seed(1))
    assert copies.shape == x.shape
    torch.testing.assert_close(copies[0], copies[1], rtol=0, atol=1e-6)  # noise would differ
    assert not torch.equal(copies, x)
    row = torch.arange(8.0).expand(1, 1, 8, 8) / 8
    pushed = affine_warp(row, rotation=0, right=2 / 8, down=0, zoom=1, edges="reflection")[..., 2:-2, 2:-2]
    torch.testing.assert_close(pushed[0, 0, 0], torch.tensor([1.0, 0, 0, 1, 2, 3, 4, 5]) / 8)
