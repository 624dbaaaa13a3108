"""The elastic transform: its fields against scipy's filters, and the whole against a slow route."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, map_coordinates

from driftline.corruptions import corrupt, parameters
from driftline.corruptions.elastic import affine_map, corner_shifts, cosines, displacement, noise
from driftline.corruptions.gaussian_blur import gaussian_weights
from driftline.corruptions.per_image_rng import keys_for

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only


@pytest.mark.parametrize("severity", [0.25, 0.75, 1, 1.5, 2, 2.5, 2.75, 3, 5])
@pytest.mark.parametrize("shape", [(224, 224), (96, 130)])
def test_a_field_is_scipys_but_for_a_hundredth_of_a_pixel(
    severity: float, shape: tuple[int, int], keys: np.ndarray
) -> None:
    p = parameters("elastic", severity)
    field = noise(keys[0], shape, 0)
    found = displacement(field, p)
    slow = gaussian_filter(field.astype(float), p["sigma"], mode="reflect", truncate=3) * p["alpha"]
    assert np.sqrt(np.mean((found - slow) ** 2)) < (1e-4 if p["sigma"] < 6 else 0.012)
    four = gaussian_filter(field.astype(float), p["sigma"], mode="reflect", truncate=4) * p["alpha"]
    if 2 <= severity <= 3:
        assert np.sqrt(np.mean((found - slow) ** 2)) < np.sqrt(np.mean((found - four) ** 2)), "cut off at 3 sigma"


def test_fields_are_as_strong_as_they_should_be(keys: np.ndarray) -> None:
    for severity, spread, within in ((0.75, 0.001, 0.001), (1, 0.09, 0.04), (2, 4.3, 0.4), (3, 0.84, 0.05)):
        p = parameters("elastic", severity)
        fields = [displacement(noise(key, (224, 224), axis), p) for key in keys[:8] for axis in range(2)]
        assert np.mean([field.std() for field in fields]) == pytest.approx(spread, abs=within)


def test_cosines_are_what_a_mirrored_gaussian_leaves_alone() -> None:
    waves, gains = cosines(50, 7.0, 1e-6)
    np.testing.assert_allclose(waves @ waves.T, np.eye(len(waves)), atol=1e-5)
    for wave, gain in zip(waves, gains, strict=True):
        slow = gaussian_filter(wave.astype(float), 7.0, mode="reflect", truncate=3)
        np.testing.assert_allclose(slow, gain * wave, atol=1e-6)
    assert len(cosines(224, 792.0, 1e-4)[0]) == 20, "a wide Gaussian needs few"
    assert len(gaussian_weights(792.0, 3)) == 4753


def test_noise_is_even_from_minus_1_to_1_and_of_its_own_in_both_directions(keys: np.ndarray) -> None:
    across, down = (noise(keys[0], (224, 224), axis) for axis in range(2))
    for field in (across, down):
        seen, _ = np.histogram(field, 10, (-1, 1))
        assert np.abs(seen / field.size - 0.1).max() < 0.006
    assert abs(np.corrcoef(across.ravel(), down.ravel())[0, 1]) < 0.02


def test_the_affine_map_moves_three_corners() -> None:
    moved = np.array([[3.0, -2], [1, 4], [-5, 0.5]])
    matrix = affine_map((224, 224), moved)
    corners = np.array([[186, 186], [186, 38], [38, 38]])
    np.testing.assert_allclose(corners @ matrix[:, :2].T + matrix[:, 2], corners + moved, atol=1e-4)
    drawn = np.stack([corner_shifts(key) for key in np.arange(4000, dtype=np.uint64)])
    assert np.abs(drawn).max() < 1
    assert drawn.var() == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize("severity", [0.5, 2, 3, 5])
def test_elastic_is_an_affine_warp_and_then_a_bent_one(severity: float, photos: np.ndarray, keys: np.ndarray) -> None:
    p = parameters("elastic", severity)
    key = keys_for(keys[:1], "elastic")[0]
    matrix = affine_map((224, 224), corner_shifts(key) * p["affine"])
    x = photos[0].astype(np.float32)
    warped = cv2.warpAffine(x, matrix, (224, 224), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    across, down = (displacement(noise(key, (224, 224), axis), p) for axis in range(2))
    rows, columns = np.mgrid[0:224, 0:224]
    where = [rows + down, columns + across]
    exact = np.stack(
        [map_coordinates(warped[..., c].astype(float), where, order=1, mode="reflect") for c in range(3)], -1
    )
    found = corrupt(photos[:1], "elastic", severity, keys[:1])[0]
    expected = np.floor(np.clip(exact, 0, 255) + 1e-3)
    assert (found == expected).mean() > 0.995
    assert np.abs(found - expected).max() <= 1


def test_small_images_at_severity_1_are_moved_but_not_bent(small: np.ndarray, keys: np.ndarray) -> None:
    assert parameters("elastic", 1, 32) == {"alpha": 0, "sigma": 0, "affine": 2.56}
    assert (corrupt(small, "elastic", 1, keys[:5]) != small).mean() > 0.3
    assert not displacement(noise(keys[0], (32, 32), 0), parameters("elastic", 1, 32)).any()
