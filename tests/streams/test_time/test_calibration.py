"""Matrices of accuracies: kept, read again, made finer, and read from the released pickle."""

import pickle

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.streams import AccuracyMatrices, read_matrices, write_matrices
from driftline.streams.test_time.calibration import severity_of_level

RANDOM = np.random.default_rng(0)


def some(levels=5):
    return AccuracyMatrices(
        {("fog", "snow"): RANDOM.random((levels, levels)), ("snow", "fog"): RANDOM.random((levels, levels))}
    )


def test_written_and_read_again(tmp_path):
    made = AccuracyMatrices(some().by_pair, {"model": {"name": "resnet20", "width": 3}, "images": 500})
    write_matrices(made, tmp_path / "m.safetensors")
    read = read_matrices(tmp_path / "m.safetensors")
    assert read.by_pair.keys() == made.by_pair.keys()
    for pair, matrix in made.by_pair.items():
        np.testing.assert_array_equal(read[pair], matrix)
    assert read.metadata == made.metadata


def test_the_released_pickle(tmp_path):
    content = {"n1_gaussian_noise_n2_jpeg": np.arange(441.0).reshape(21, 21), "n1_elastic_n2_fog": np.ones((21, 21))}
    for protocol in (2, 4):
        (tmp_path / "ccc_accuracy_matrix.pickle").write_bytes(pickle.dumps(content, protocol))
        read = read_matrices(tmp_path / "ccc_accuracy_matrix.pickle")
        assert set(read.by_pair) == {("gaussian_noise", "jpeg"), ("elastic", "fog")}
        assert read["gaussian_noise", "jpeg"][1, 0] == 21, "the first corruption's level is the first index"
        assert read.levels == 21


def test_a_pickle_that_would_run_something_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    (tmp_path / "m.pickle").write_bytes(pickle.dumps({"n1_fog_n2_snow": Evil()}))
    with pytest.raises(UserError, match="do not trust this file"):
        read_matrices(tmp_path / "m.pickle")


def test_finer_levels_lie_on_straight_lines():
    grid = np.linspace(0, 5, 11)
    plane = 70 - 3 * grid[:, None] - 5 * grid[None, :] + 0.5 * np.outer(grid, grid)
    finer = AccuracyMatrices({("fog", "snow"): plane}).at(21)
    quarter = np.linspace(0, 5, 21)
    expected = 70 - 3 * quarter[:, None] - 5 * quarter[None, :] + 0.5 * np.outer(quarter, quarter)
    np.testing.assert_allclose(finer["fog", "snow"], expected)
    assert finer.metadata["interpolated"] == "bilinearly from 11 to 21 levels"


def test_between_two_levels_is_their_mean():
    coarse = some(3)
    finer = coarse.at(5)["fog", "snow"]
    matrix = coarse["fog", "snow"]
    np.testing.assert_allclose(finer[::2, ::2], matrix)
    np.testing.assert_allclose(finer[1, 0], (matrix[0, 0] + matrix[1, 0]) / 2)
    np.testing.assert_allclose(finer[1, 3], matrix[:2, 1:].mean())


def test_what_cannot_be_used_is_refused(tmp_path):
    with pytest.raises(UserError, match="driftline calibrate -o"):
        read_matrices(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match="expected matrices of accuracies"):
        read_matrices(tmp_path / "bad.safetensors")
    write_matrices(some(), tmp_path / "flipped.safetensors")
    content = (tmp_path / "flipped.safetensors").read_bytes()
    (tmp_path / "flipped.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(UserError, match=r"expected matrices of accuracies.*, but its checksum differs$"):
        read_matrices(tmp_path / "flipped.safetensors")
    with pytest.raises(UserError, match="square matrices of one size"):
        AccuracyMatrices({("fog", "snow"): np.zeros((3, 3)), ("snow", "fog"): np.zeros((4, 4))})
    with pytest.raises(UserError, match="leave some of them out"):
        some(5).at(3)


def test_severities():
    assert [severity_of_level(k) for k in (0, 1, 20)] == [0, 0.25, 5]
    assert severity_of_level(5, 11) == 2.5
