"""Digits in colour, which need no download."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import driftline
from driftline.data import load
from driftline.errors import UserError


def test_a_picture_is_its_digit_in_dark_ink_on_light_paper() -> None:
    data = load("color-digits")
    images, labels = load_digits(return_X_y=True)
    np.testing.assert_array_equal(data.samples.y, labels)
    corners = data.samples.x[:, ::31, ::31].astype(float)  # enlarged ends on ends: corners stay what they were
    written = images.reshape(-1, 8, 8)[:, ::7, ::7, None] / 16
    blank = written == 0
    assert corners[np.broadcast_to(blank, corners.shape)].min() >= 150
    assert corners[np.broadcast_to(written == 1, corners.shape)].max() < 100
    assert len(np.unique(corners[:, 0, 0], axis=0)) > 1000  # colours differ from image to image


def test_the_test_set_depends_on_the_seed_alone() -> None:
    first, same, other = (load("color-digits", {"seed": seed}) for seed in (0, 0, 1))
    assert first.fingerprint == same.fingerprint
    assert first.test is not None
    assert other.test is not None
    assert (first.test != other.test).any()
    assert first.test.sum() == other.test.sum() == 797


@pytest.mark.parametrize("test", [0, 1797])
def test_some_must_be_left_to_train_on(test: int) -> None:
    with pytest.raises(UserError, match="some are needed to train on"):
        load("color-digits", {"test": test})


def test_the_test_time_benchmark_runs_without_any_file(tmp_path: Path) -> None:
    spec = {
        "benchmark": "test-time",
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 4},
        "methods": "frozen,bn",
        "test-time": {"order": "cin-c", "corruptions": "contrast", "images": 64, "upstream_updates": 20},
    }
    assert len(driftline.run(spec, runs=tmp_path / "runs", data_dir=tmp_path)) == 2
