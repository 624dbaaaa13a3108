"""Calibration: entries by hand, the work done once, and resumed after a stop."""

from collections import Counter

import numpy as np
import pytest

from driftline.benchmarks.test_time import accuracy_grid
from driftline.benchmarks.test_time.accuracy_grid import AccuracyGrid, calibrate
from driftline.corruptions import cropping
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.test_time.stream import image_keys
from driftline.types import Samples

N = 40
NAMES = ("fog", "snow", "frost")
STRENGTH = {"fog": 1, "snow": 2, "frost": 5}
LABELS = np.arange(N) % 4


def images():
    """Red is the label, green how much damage an image bears, blue the damage so far."""
    x = np.zeros((N, 2, 2, 3), np.uint8)
    x[..., 0] = LABELS[:, None, None]
    x[..., 1] = np.arange(N)[:, None, None]
    return x


def damage(x, name, severity, keys):
    worn = x.copy()
    worn[..., 2] += np.uint8(round(4 * severity) * STRENGTH[name])
    return worn


def predict(x):
    """Right as long as the damage is no more than the image bears."""
    label, bears, damaged = x[:, 0, 0, 0].astype(int), x[:, 0, 0, 1], x[:, 0, 0, 2]
    return np.where(damaged <= bears, label, label + 1)


def by_hand(first, second, levels):
    quarter = 20 // (levels - 1)
    worn = quarter * (STRENGTH[first] * np.arange(levels)[:, None] + STRENGTH[second] * np.arange(levels))
    return 100 * np.maximum(N - worn, 0) / N


@pytest.mark.parametrize("levels", [3, 11])
def test_entries_are_the_share_of_right_answers(levels):
    matrices = calibrate(predict, images(), LABELS, NAMES, levels=levels, corrupt=damage)
    assert set(matrices.by_pair) == {(a, b) for a in NAMES for b in NAMES if a != b}
    for (first, second), matrix in matrices.by_pair.items():
        np.testing.assert_allclose(matrix, by_hand(first, second, levels))


def test_the_first_corruption_comes_first_and_images_keep_their_keys():
    given = []

    def noting(x, name, severity, keys):
        given.append(keys)
        worn = x.copy()
        worn[..., 2] = worn[..., 2] * 2 + (20 if name == "fog" else 0)
        return worn

    def last(x):
        return np.where(x[:, 0, 0, 2] == 20, LABELS, -1)

    matrices = calibrate(last, images(), LABELS, ("fog", "snow"), levels=2, corrupt=noting, seed=Seed(3))
    np.testing.assert_array_equal(matrices["fog", "snow"], [[0, 0], [100, 0]])
    np.testing.assert_array_equal(matrices["snow", "fog"], [[0, 100], [0, 100]])
    for drawn in given:
        np.testing.assert_array_equal(drawn, image_keys(Seed(3).child("noise"), np.arange(N)))


def test_nothing_is_corrupted_or_asked_twice():
    """One first corruption per row, and what a single corruption does is asked once for all pairs."""
    calls, asked = Counter(), [0]

    def counting(x, name, severity, keys):
        calls[name, severity, int(x[0, 0, 0, 2])] += 1
        return damage(x, name, severity, keys)

    def asking(x):
        asked[0] += 1
        return predict(x)

    levels = 5
    calibrate(asking, images(), LABELS, NAMES, levels=levels, corrupt=counting)
    rows, seconds = len(NAMES) * (levels - 1), (len(NAMES) - 1) * (levels - 1)
    assert asked[0] == len(NAMES) + rows * (1 + seconds), "clean images once per part"
    assert sum(calls.values()) == rows * (1 + seconds)
    grid = AccuracyGrid(Samples(images(), LABELS), NAMES, levels, Seed(0), damage)
    assert grid.evaluations == asked[0] * N
    assert f"{asked[0] * N:,} images to corrupt and classify" in grid.note


def test_batches_change_nothing(monkeypatch):
    noisy = {"levels": 3, "seed": Seed(2)}
    x = np.random.default_rng(0).integers(0, 256, (N, 32, 32, 3), dtype=np.uint8)

    def sums(x):
        return x.sum(axis=(1, 2, 3)) % 4

    whole = calibrate(sums, x, LABELS, ("gaussian_noise", "glass_blur"), **noisy)
    monkeypatch.setattr(accuracy_grid, "BATCH", 7)
    parts = calibrate(sums, x, LABELS, ("gaussian_noise", "glass_blur"), **noisy)
    for pair, matrix in whole.by_pair.items():
        np.testing.assert_array_equal(matrix, parts[pair])
    assert 0 < whole["gaussian_noise", "glass_blur"][1, 1] < 60


def test_what_was_stopped_goes_on(tmp_path):
    rows_asked = Counter()

    def stopping(after):
        left = [after]

        def ask(x):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            rows_asked["all"] += 1
            return predict(x)

        return ask

    settings = {"levels": 5, "corrupt": damage, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        calibrate(stopping(60), images(), LABELS, NAMES, **settings)
    finished = len(list(tmp_path.glob("*.safetensors")))
    assert finished == 6, "rows of 9 entries, and one for each part"
    before = rows_asked["all"]
    matrices = calibrate(stopping(10_000), images(), LABELS, NAMES, **settings)
    assert rows_asked["all"] - before == 3 + 12 * 9 - finished * 9, "finished rows are not asked again"
    np.testing.assert_allclose(matrices["fog", "frost"], by_hand("fog", "frost", 5))


def test_half_a_row_is_made_again(tmp_path):
    settings = {"levels": 3, "corrupt": damage, "folder": tmp_path}
    calibrate(predict, images(), LABELS, NAMES, **settings)
    (tmp_path / "snow-01.safetensors").write_bytes(b"half")
    matrices = calibrate(predict, images(), LABELS, NAMES, **settings)
    np.testing.assert_allclose(matrices["snow", "fog"], by_hand("snow", "fog", 3))


def test_settings_are_checked():
    with pytest.raises(UserError, match="at least two corruptions"):
        calibrate(predict, images(), LABELS, ("fog",), corrupt=damage)
    with pytest.raises(UserError, match="at least two corruptions"):
        calibrate(predict, images(), LABELS, ("fog", "fog"), corrupt=damage)
    with pytest.raises(UserError, match="levels=1"):
        calibrate(predict, images(), LABELS, NAMES, levels=1, corrupt=damage)


@pytest.mark.parametrize(("side", "shown"), [(32, 32), (224, 224), (256, 224), (300, 224)])
def test_of_large_images_the_centre_is_measured(side, shown):
    pytest.importorskip("PIL")
    images = np.random.default_rng(0).integers(0, 256, (2, side, side, 3), dtype=np.uint8)
    found = cropping.center_crops(images)
    assert found.shape == (2, shown, shown, 3)
    if side == 256:
        np.testing.assert_array_equal(found, images[:, 16:240, 16:240])
