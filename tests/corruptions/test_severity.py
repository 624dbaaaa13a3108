"""Parameters at all twenty levels of CCC, and what rounding makes of them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from driftline.corruptions import HOLDOUT, NAMES, parameters, which_table
from driftline.corruptions.defocus_blur import disk, kernel_of, smoothing_weights
from driftline.corruptions.gaussian_blur import gaussian_weights
from driftline.corruptions.glass_blur import rounded_parameters
from driftline.corruptions.motion_blur import tap_weights
from driftline.corruptions.pixelate_jpeg import rounded_quality, shrunk_side
from driftline.corruptions.severity import CIFAR, IMAGENET
from driftline.corruptions.zoom_blur import visible, zoom_factors
from driftline.errors import UserError

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only

LEVELS = np.arange(1, 21) / 4


def rows() -> list[dict[str, str]]:
    with (Path(__file__).parent / "severity_params.csv").open() as file:
        return list(csv.DictReader(file))


def pairs(text: str) -> dict[str, float]:
    return {key: float(value) for key, value in (part.split("=") for part in text.split(";") if part)}


def effective(name: str, p: dict[str, float]) -> dict[str, float]:
    """What the code makes of the parameters at 224 pixels, by the functions that corrupt."""
    match name:
        case "shot_noise":
            return {"lambda": 1 / p["inv_lambda"]}
        case "defocus_blur":
            radius, sigma = p["radius"], p["alias_sigma"]
            sides = {"kernel_side": len(kernel_of(radius, sigma)), "aa_ksize": len(smoothing_weights(radius, sigma))}
            return {**sides, "pixels_in_disk": disk(radius).sum()}
        case "glass_blur":
            return dict(zip(("max_delta_used", "iters_used"), rounded_parameters(p), strict=True))
        case "motion_blur":
            return {"taps": len(tap_weights(p["radius"], p["sigma"]))}
        case "zoom_blur":
            return {"n_zooms": len(zoom_factors(p)), "last": zoom_factors(p)[-1]}
        case "snow":
            return {"mb_taps": len(tap_weights(p["mb_radius"], p["mb_sigma"])), "crop": visible(224, p["zoom"])}
        case "elastic":
            return {"gauss_radius": len(gaussian_weights(p["sigma"], 3)) // 2}
        case "pixelate":
            return {"size_used": shrunk_side(224, p["scale"])}
        case "jpeg":
            return {"quality_used": rounded_quality(p["quality"])}
    return {}


def test_every_row_of_the_table_of_ccc() -> None:
    table = rows()
    assert len(table) == 300
    for row in table:
        name, found = row["corruption"], parameters(row["corruption"], float(row["severity"]))
        expected = pairs(row["params_interpolated"])
        assert list(found) == list(expected)
        assert list(found.values()) == pytest.approx(list(expected.values()), rel=1e-5, abs=1e-9), row
        used = pairs(row["effective_after_rounding"])
        assert effective(name, found) == pytest.approx(used, rel=1e-5), row


def test_counts_of_zooms_taps_and_qualities() -> None:
    zooms = [len(zoom_factors(parameters("zoom_blur", s))) for s in LEVELS]
    assert zooms == [3, 6, 9, 12, 13, 14, 15, 16, 14, 13, 12, 11, 12, 12, 13, 13, 13, 12, 11, 11]
    taps = [len(tap_weights(*parameters("motion_blur", s).values())) for s in LEVELS]
    assert taps == [7, 11, 17, 21, 25, 27, 29, *[31] * 9, 35, 37, 39, 41]
    assert [rounded_quality(q) for q in (21.5, 16.5, 12.5, 8.5)] == [22, 16, 12, 8]


def test_shot_noise_interpolates_the_inverse_of_lambda() -> None:
    assert 1 / parameters("shot_noise", 0.25)["inv_lambda"] == pytest.approx(240)
    assert 1 / parameters("shot_noise", 3.5)["inv_lambda"] == pytest.approx(7.0588, abs=1e-4), "not 8.5"


def test_each_severity_that_is_whole_has_its_row_and_any_other_lies_between() -> None:
    for rows_of, side in ((IMAGENET, 224), (CIFAR, 32)):
        assert set(rows_of) == {*NAMES, *HOLDOUT}
        for name, columns in rows_of.items():
            for severity in range(6):
                expected = {key: pytest.approx(values[severity]) for key, values in columns.items()}
                assert parameters(name, severity, side) == expected
            between = parameters(name, 3.7, side)
            for key, values in columns.items():
                assert between[key] == pytest.approx(0.3 * values[3] + 0.7 * values[4])


def test_small_images_have_the_parameters_of_cifar() -> None:
    assert which_table(63, "auto") == "cifar"
    assert which_table(64, "auto") == "imagenet"
    assert parameters("gaussian_noise", 5, 32) == {"sigma": 0.1}
    assert parameters("gaussian_noise", 5, 32, "imagenet") == {"sigma": 0.38}
    assert parameters("gaussian_noise", 5, 224, "cifar") == {"sigma": 0.1}
    with pytest.raises(UserError, match="'auto', 'imagenet' or 'cifar'"):
        which_table(64, "tiny")  # type: ignore[arg-type]


def test_elastic_lengths_grow_with_the_image() -> None:
    assert parameters("elastic", 3, 112) == pytest.approx({"alpha": 6.1, "sigma": 1.22, "affine": 2.44})
    assert parameters("elastic", 2, 48) == pytest.approx({"alpha": 2.4, "sigma": 9.6, "affine": 3.36})
