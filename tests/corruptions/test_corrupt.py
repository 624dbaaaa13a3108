"""What holds for all corruptions: keys, batches, sizes, severities, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftline.corruptions import HOLDOUT, NAMES, corrupt, per_image_rng
from driftline.errors import UserError

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only

ALL = (*NAMES, *HOLDOUT)
GROWING = ["gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "motion_blur", "brightness", "contrast"]
GROWING += ["jpeg", "speckle_noise", "gaussian_blur"]
WITHOUT_CHANCE = [
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg",
    "gaussian_blur",
    "saturate",
]


def test_there_are_fifteen_and_four() -> None:
    assert len(NAMES) == 15
    assert HOLDOUT == ("speckle_noise", "gaussian_blur", "spatter", "saturate")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(ALL),
    severity=st.floats(0.01, 5),
    order=st.permutations(range(5)),
    count=st.integers(1, 5),
    table=st.sampled_from(["auto", "imagenet"]),
)
def test_an_image_is_corrupted_alike_alone_in_a_batch_and_in_any_order(
    name: str, severity: float, order: list[int], count: int, table: str, small: np.ndarray, keys: np.ndarray
) -> None:
    together = corrupt(small, name, severity, keys[:5], table=table)  # type: ignore[arg-type]
    rows = np.array(order[:count])
    some = corrupt(small[rows], name, severity, keys[rows], table=table)  # type: ignore[arg-type]
    np.testing.assert_array_equal(some, together[rows])


@pytest.mark.parametrize("name", ALL)
def test_the_key_alone_decides_what_is_drawn(name: str, small: np.ndarray, keys: np.ndarray) -> None:
    twice = np.repeat(small[:1], 2, axis=0)
    one, other = corrupt(twice, name, 3, keys[:2])
    assert np.array_equal(one, other) == (name in WITHOUT_CHANCE)
    np.testing.assert_array_equal(corrupt(twice, name, 3, keys[:2]), [one, other])


@pytest.mark.parametrize("name", ALL)
def test_a_generator_draws_a_key_for_every_image(name: str, small: np.ndarray) -> None:
    drawn = np.random.default_rng(3).integers(0, 2**64, 5, dtype=np.uint64)
    found = corrupt(small, name, 2.2, np.random.default_rng(3))
    np.testing.assert_array_equal(found, corrupt(small, name, 2.2, drawn))


@pytest.mark.parametrize("name", ALL)
def test_severity_0_changes_nothing_and_the_images_given_are_never_altered(
    name: str, small: np.ndarray, keys: np.ndarray
) -> None:
    before = small.copy()
    unchanged = corrupt(small, name, 0, keys[:5])
    np.testing.assert_array_equal(unchanged, small)
    assert unchanged is not small
    changed = corrupt(small, name, 5, keys[:5])
    assert (changed != small).any()
    np.testing.assert_array_equal(small, before)
    assert corrupt(small[:0], name, 3, keys[:0]).shape == (0, 40, 36, 3)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(32, 32), (63, 41), (64, 90)])
def test_images_of_any_size_from_32_pixels_on(
    name: str, shape: tuple[int, int], photos: np.ndarray, keys: np.ndarray
) -> None:
    image = photos[:2, : shape[0], : shape[1]]  # not contiguous either
    for severity in (1e-6, 0.1, 0.6, 2.3, 4.9, 5):
        found = corrupt(image, name, severity, keys[:2])
        assert found.shape == image.shape
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, corrupt(np.ascontiguousarray(image), name, severity, keys[:2]))


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_with_severity_grows_at_every_level(name: str, photos: np.ndarray, keys: np.ndarray) -> None:
    """Those whose parameters all go one way; zoom, snow, glass, elastic and saturate do not."""
    image = photos // 2 + 40
    changes = [np.abs(corrupt(image, name, s, keys[:3]) - image.astype(float)).mean() for s in np.arange(21) / 4]
    steps = np.diff(changes)
    slack = 0.02 * max(changes) if name in ("jpeg", "defocus_blur") else 0.0  # the size of a step rounds
    assert steps.min() > -slack, changes


@pytest.mark.parametrize(
    ("images", "reason"),
    [
        (np.zeros((1, 64, 64, 3)), "not float64"),
        ([1, 2], "not list"),
        (np.zeros((1, 64, 64), np.uint8), "repeat a gray channel"),
        (np.zeros((1, 64, 64, 1), np.uint8), "repeat a gray channel"),
        (np.zeros((1, 64, 64, 4), np.uint8), "shape"),
        (np.zeros((1, 31, 64, 3), np.uint8), "32 pixels or more"),
    ],
)
def test_images_that_are_refused(images: np.ndarray, reason: str, keys: np.ndarray) -> None:
    with pytest.raises(UserError, match=reason):
        corrupt(images, "fog", 3, keys[:1])


def test_names_severities_and_keys_that_are_refused(small: np.ndarray, keys: np.ndarray) -> None:
    with pytest.raises(UserError, match=r"no corruption 'gausian_noise'\. Did you mean 'gaussian_noise'"):
        corrupt(small, "gausian_noise", 3, keys[:5])
    for severity in (-0.1, 5.01, float("nan")):
        with pytest.raises(UserError, match="a number from 0 to 5"):
            corrupt(small, "fog", severity, keys[:5])
    for rng in (keys[:4], keys[:5].astype(np.int64), 3):
        with pytest.raises(UserError, match="5 keys of type uint64"):
            corrupt(small, "fog", 3, rng)  # type: ignore[arg-type]


def test_names_of_the_folders_of_imagenet_c_are_known_too(small: np.ndarray, keys: np.ndarray) -> None:
    for name, other in (("elastic", "elastic_transform"), ("jpeg", "jpeg_compression")):
        np.testing.assert_array_equal(corrupt(small, name, 3, keys[:5]), corrupt(small, other, 3, keys[:5]))


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    heavy = {"numba", "cv2", "PIL", "torch"}
    code = f"import sys, driftline.corruptions.cropping, driftline.shifts; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_without_a_folder_to_keep_compiled_loops_in_they_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = numba.njit

    def refuses(function: Any, **options: bool):  # type: ignore[no-untyped-def]
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return usual(function, **options)

    monkeypatch.setattr(numba, "njit", refuses)

    @per_image_rng.cached_njit(fastmath=True)
    def doubled(x: int) -> int:
        return 2 * x

    assert doubled(21) == 42


def test_a_missing_package_is_one_sentence(
    small: np.ndarray, keys: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(UserError, match=r"driftline\[corruptions\]"):
        corrupt(small, "fog", 3, keys[:5])
