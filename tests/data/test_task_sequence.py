"""Sequences of tasks: the union is the dataset, tests stay tests, and each kind changes what it says."""

from __future__ import annotations

import functools
import operator
from pathlib import Path

import numpy as np
import pytest

from driftline.data import Dataset, load
from driftline.errors import UserError


def made(**options: object) -> Dataset:
    return load("task-sequence", options)


def test_split_is_a_partition_in_a_given_or_random_order() -> None:
    base, data = load("color-digits"), made(tasks=3)
    assert data.test is not None
    assert base.test is not None
    order = np.argsort(data.samples.id)
    assert data.samples.id[order].tolist() == list(range(1797)), "each sample once"
    assert np.array_equal(data.samples.x[order], base.samples.x)
    assert np.array_equal(data.samples.y[order], base.samples.y)
    assert np.array_equal(data.test[order], base.test)
    assert data.base is None
    classes = [np.unique(data.samples.y[data.samples.time == t]).tolist() for t in (1, 2, 3)]
    assert classes == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    drawn = made(tasks=3, class_order="random")
    groups = [np.unique(drawn.samples.y[drawn.samples.time == t]).tolist() for t in (1, 2, 3)]
    assert sorted(functools.reduce(operator.iadd, groups, [])) == list(range(10))
    assert groups != classes
    assert np.array_equal(made(tasks=3, class_order="random").samples.y, drawn.samples.y)
    assert not np.array_equal(made(tasks=3, class_order="random", seed=1).samples.y, drawn.samples.y)


def test_a_permutation_moves_pixels_alike_in_a_task_and_otherwise_in_the_next() -> None:
    base, data = load("color-digits"), made(kind="permuted", tasks=2)
    n = len(base.samples)
    first, second = data.samples.x[:n].reshape(n, -1, 3), data.samples.x[n:].reshape(n, -1, 3)
    pixels = base.samples.x.reshape(n, -1, 3)
    assert np.array_equal(np.sort(first, axis=1), np.sort(pixels, axis=1))
    columns = {column.tobytes(): k for k, column in enumerate(pixels.swapaxes(0, 1))}
    moved = [columns[column.tobytes()] for column in first.swapaxes(0, 1)]
    assert len(set(moved)) > 1000, "up to pixels that are equal in all images"
    assert np.array_equal(pixels[:, moved], first)
    assert not np.array_equal(first, second)
    assert data.base is not None
    assert data.base.tolist() == list(range(n)) * 2


def test_angles_increase(tmp_path: Path) -> None:
    """A bright half plane turns: its center of mass gives the angle of each task."""
    data = made(kind="rotated", tasks=6, degrees=180.0, base="npz", options={"path": str(half_plane(tmp_path))})
    angles = []
    for t in range(1, 7):
        image = data.samples.x[data.samples.time == t][0, :, :, 0].astype(float)
        y, x = np.mgrid[:33, :33] - 16
        inside = x**2 + y**2 < 200
        dx, dy = ((image * inside * axis).sum() for axis in (x, y))
        angles.append(np.degrees(np.arctan2(-dy, dx)) % 360)
    assert all(30 * t - 2 <= angle <= 30 * (t + 1) + 2 for t, angle in enumerate(angles)), angles
    assert (np.diff(angles) > 0).all()


def half_plane(folder: Path) -> Path:
    x = np.zeros((40, 33, 33, 3), np.uint8)
    x[:, :, 17:] = 200
    np.savez(folder / "half.npz", x=x, y=np.arange(40) % 2)
    return folder / "half.npz"


@pytest.mark.parametrize("kind", ["permuted", "rotated"])
def test_no_task_trains_on_an_image_that_another_tests_on(kind: str) -> None:
    data = made(kind=kind, tasks=3, samples=50, test_samples=20)
    assert data.test is not None
    assert data.base is not None
    assert not set(data.base[data.test]) & set(data.base[~data.test])
    for t in (1, 2, 3):
        here = data.samples.time == t
        assert ((here & ~data.test).sum(), (here & data.test).sum()) == (50, 20)
    own = [set(data.base[(data.samples.time == t) & ~data.test]) for t in (1, 2)]
    assert own[0] != own[1], "each task draws its own"


def test_a_dataset_without_a_test_set_gets_one() -> None:
    data = made(base="digits", options={"rotation": 0, "noise": 0}, kind="rotated", tasks=2, test=0.25)
    assert data.test is not None
    assert data.base is not None
    assert data.test.mean() == pytest.approx(0.25, abs=0.03)
    assert not set(data.base[data.test]) & set(data.base[~data.test])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": 11}, "tasks=11: give a number from 2 to 10, the number of classes"),
        ({"tasks": 1, "kind": "rotated"}, "tasks=1: give a number from 2$"),
        ({"base": "task-sequence"}, "name another dataset"),
        ({"kind": "shuffled"}, "no kind of dataset 'task-sequence' 'shuffled'"),
    ],
)
def test_refusals(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        made(**options)
