"""Blurs, against direct and slow computations of their definitions."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.ndimage import correlate, gaussian_filter, zoom

from driftline.corruptions import corrupt, parameters
from driftline.corruptions.defocus_blur import disk, kernel_of
from driftline.corruptions.glass_blur import _shuffle_neighbors
from driftline.corruptions.motion_blur import blur_along_line, directions, offsets, tap_weights
from driftline.corruptions.per_image_rng import ROUNDING_GUARD, keys_for, random_bits, stream_words
from driftline.corruptions.zoom_blur import zoom_factors

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only


def same(found: np.ndarray, exact: np.ndarray) -> None:
    """Cut as the exact numbers are, a nudge added; but for a few that the nudge brings close to a whole number."""
    nudged = exact + float(ROUNDING_GUARD)
    clear = np.abs(nudged - np.rint(nudged)) > 5e-4
    assert clear.mean() > 0.99
    expected = np.floor(nudged).clip(0, 255)
    np.testing.assert_array_equal(found[clear], expected[clear])
    assert np.abs(found - expected).max() <= 1
    assert (found != np.rint(exact)).mean() > 0.1, "a version that rounds is another"


@pytest.mark.parametrize("severity", [0.5, 1, 2.75, 3, 3.3, 3.75, 4, 4.25, 4.6, 5])
def test_defocus_is_the_correlation_with_its_kernel(severity: float, photos: np.ndarray, keys: np.ndarray) -> None:
    p = parameters("defocus_blur", severity)
    flat = disk(p["radius"])
    width = 3 if p["radius"] <= 8 else 5
    kernel = cv2.GaussianBlur(flat / flat.sum(), (width, width), sigmaX=p["alias_sigma"])
    np.testing.assert_allclose(kernel_of(**{"radius": p["radius"], "sigma": p["alias_sigma"]}), kernel, atol=1e-9)
    image = photos[0, :90, :100]
    found = corrupt(image[None], "defocus_blur", severity, keys[:1])[0]
    exact = np.stack([correlate(image[..., c].astype(float), kernel, mode="mirror") for c in range(3)], axis=-1)
    same(found, exact)


def test_defocus_of_small_images_and_of_grids_that_are_not_symmetric(keys: np.ndarray) -> None:
    for seed, (severity, side, table) in enumerate([(5, 33, "cifar"), (2, 40, "cifar"), (4.05, 64, "imagenet")]):
        p = parameters("defocus_blur", severity, side, table)
        image = np.random.default_rng(seed).integers(0, 256, (side, side + 3, 3)).astype(np.uint8)
        found = corrupt(image[None], "defocus_blur", severity, keys[:1], table=table)[0]
        kernel = kernel_of(p["radius"], p["alias_sigma"])
        exact = [correlate(image[..., c].astype(float), kernel, mode="mirror") for c in range(3)]
        same(found, np.stack(exact, axis=-1))


@pytest.mark.parametrize(
    ("radius", "total"),
    [(6, 1), (7, 1.003), (7.5, 1.012), (8, 1.013), (8.5, 1.016), (9, 1.014), (9.5, 1.012), (10, 1.011)],
)
def test_kernels_that_touch_their_frame_do_not_sum_to_one(radius: float, total: float) -> None:
    assert kernel_of(radius, 0.5).sum() == pytest.approx(total, abs=6e-4)


def test_a_kernel_of_even_side_moves_the_image_by_half_a_pixel(keys: np.ndarray) -> None:
    image = np.zeros((1, 64, 64, 3), np.uint8)
    image[0, 32, 30] = 255
    for severity, moved in ((4, 0.0), (4.25, 0.5)):
        bright = corrupt(np.maximum(image, 0), "defocus_blur", severity, keys[:1])[0, ..., 0].astype(float)
        assert bright.any()
        centre = (bright.sum(axis=0) @ np.arange(64)) / bright.sum()
        assert centre == pytest.approx(30 + moved, abs=0.01)


def test_a_flat_image_stays_flat(keys: np.ndarray) -> None:
    for level in (1, 100, 254):
        image = np.full((1, 64, 64, 3), level, np.uint8)
        for name in ("gaussian_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic", "contrast", "defocus_blur"):
            np.testing.assert_array_equal(corrupt(image, name, 3, keys[:1]), image, err_msg=name)


@pytest.mark.parametrize("severity", [0.5, 2, 5])
def test_gaussian_blur_is_scipys(severity: float, photos: np.ndarray, keys: np.ndarray) -> None:
    sigma = parameters("gaussian_blur", severity)["sigma"]
    image = photos[0, :100, :120]
    exact = gaussian_filter(image.astype(float), (sigma, sigma, 0), mode="nearest", truncate=4)
    same(corrupt(image[None], "gaussian_blur", severity, keys[:1])[0], exact)


def copied_slowly(image: np.ndarray, key: np.uint64, reach: int, passes: int, swap: bool = False) -> np.ndarray:
    x = image.copy()
    height, width = x.shape[:2]
    for turn in range(passes):
        low, high = stream_words(key, turn)
        for h in range(height - reach, reach, -1):
            for w in range(width - reach, reach, -1):
                place = ((random_bits(h * width + w, low, high) >> 8) * (2 * reach) ** 2) >> 24
                dy, dx = int(place) // (2 * reach) - reach, int(place) % (2 * reach) - reach
                assert -reach <= dy < reach
                assert -reach <= dx < reach
                other = x[h + dy, w + dx].copy()
                if swap:
                    x[h + dy, w + dx] = x[h, w]
                x[h, w] = other
    return x


@pytest.mark.parametrize(("reach", "passes"), [(1, 2), (2, 3), (4, 2)])
def test_glass_copies_neighbours_one_after_another(
    reach: int, passes: int, small: np.ndarray, keys: np.ndarray
) -> None:
    moved = small.copy()
    _shuffle_neighbors(moved, keys[:5], reach, passes)
    for image, after, key in zip(small, moved, keys, strict=False):
        np.testing.assert_array_equal(after, copied_slowly(image, key, reach, passes))
        assert not np.array_equal(after, copied_slowly(image, key, reach, passes, swap=True))
    edge = reach + 1
    np.testing.assert_array_equal(moved[:, :edge], small[:, :edge])
    np.testing.assert_array_equal(moved[:, -reach + 1 or 40 :], small[:, -reach + 1 or 40 :])


def test_glass_creeps_by_half_a_pixel(keys: np.ndarray) -> None:
    """Offsets lie in [-d, d): a ramp rises by half of what it rises from pixel to pixel."""
    ramp = np.broadcast_to((np.arange(224) + 10).astype(np.uint8)[None, None, :, None], (4, 224, 224, 3)).copy()
    _shuffle_neighbors(ramp, keys[:4], 3, 1)
    inside = ramp[:, 10:-10, 10:-10, 0] - (np.arange(224) + 10.0)[10:-10]
    assert -1.2 < inside.mean() < -0.4


def test_glass_is_blur_displacement_blur(photos: np.ndarray, keys: np.ndarray) -> None:
    p = parameters("glass_blur", 3)
    soft = np.floor(gaussian_filter(photos.astype(float), (0, 1, 1, 0), mode="nearest") + 1e-3).astype(np.uint8)
    _shuffle_neighbors(soft, keys_for(keys[:3], "glass_blur"), 2, 3)
    assert p == pytest.approx({"sigma": 1, "max_delta": 2, "iters": 3})
    found = corrupt(photos, "glass_blur", 3, keys[:3])
    exact = gaussian_filter(soft.astype(float), (0, 1, 1, 0), mode="nearest")
    assert np.abs(found - np.floor(exact)).max() <= 2
    assert (found == np.floor(exact)).mean() > 0.98


def test_glass_at_a_quarter_moves_nothing(photos: np.ndarray, keys: np.ndarray) -> None:
    quarter = corrupt(photos, "glass_blur", 0.25, keys[:3])
    np.testing.assert_array_equal(quarter, corrupt(photos, "glass_blur", 0.25, keys[3:6]))


def smeared_slowly(image: np.ndarray, weights: np.ndarray, angle: float) -> np.ndarray:
    height, width = image.shape[:2]
    total = np.zeros(image.shape)
    for i, weight in enumerate(weights):
        dx = int(np.ceil(i * np.cos(np.radians(angle)) - 0.5))
        dy = int(np.ceil(i * np.sin(np.radians(angle)) - 0.5))
        rows = np.clip(np.arange(height) + dy, 0, height - 1)
        columns = np.clip(np.arange(width) + dx, 0, width - 1)
        total += weight * image[rows][:, columns]
    return total


@pytest.mark.parametrize("severity", [0.25, 1.25, 3, 5])
def test_motion_blur_is_the_sum_along_a_line(severity: float, photos: np.ndarray, keys: np.ndarray) -> None:
    p = parameters("motion_blur", severity)
    taps = 2 * int(np.ceil(p["radius"])) + 1
    bell = np.exp(-(np.arange(taps) ** 2) / (2 * p["sigma"] ** 2))
    found = corrupt(photos, "motion_blur", severity, keys[:3])
    angles = directions(keys_for(keys[:3], "motion_blur"), -45.0, 45.0)
    for image, blurred, angle in zip(photos, found, angles, strict=True):
        same(blurred, smeared_slowly(image, bell / bell.sum(), angle))


def test_motion_blur_looks_ahead_only() -> None:
    image, out = np.zeros((41, 41), np.uint8), np.zeros((41, 41), np.uint8)
    image[20, 20] = 255
    blur_along_line(image, out, tap_weights(5, 3), 0.0)
    assert out[20, 14:21].all()
    assert not out[20, 21:].any()
    assert out[:20].sum() == out[21:].sum() == 0


def test_directions_are_even() -> None:
    angles = directions(np.arange(20_000, dtype=np.uint64), -45.0, 45.0)
    seen, _ = np.histogram(angles, 9, (-45, 45))
    assert np.abs(seen / 20_000 - 1 / 9).max() < 0.01
    across, down = offsets(4, 30.0)
    assert across.tolist() == [0, 1, 2, 3]
    assert down.tolist() == [0, 0, 1, 1], "a half goes down: ceil(1.5 - .5)"


def zoomed_slowly(image: np.ndarray, factor: float) -> np.ndarray:
    parts = [int(np.ceil(side / factor)) for side in image.shape[:2]]
    top, left = ((side - part) // 2 for side, part in zip(image.shape, parts, strict=False))
    grown = zoom(image[top : top + parts[0], left : left + parts[1]].astype(float), (factor, factor, 1), order=1)
    down, right = ((a - b) // 2 for a, b in zip(grown.shape[:2], image.shape[:2], strict=True))
    return np.asarray(grown[down : down + image.shape[0], right : right + image.shape[1]])


@pytest.mark.parametrize("severity", [0.25, 1, 3, 5])
def test_zoom_blur_is_the_mean_of_zooms(severity: float, photos: np.ndarray, keys: np.ndarray) -> None:
    zooms = zoom_factors(parameters("zoom_blur", severity))
    for image in (photos[0], photos[1, :150, :101]):
        exact = (image + sum(zoomed_slowly(image, factor) for factor in zooms)) / (len(zooms) + 1)
        same(corrupt(image[None], "zoom_blur", severity, keys[:1], table="imagenet")[0], exact)
