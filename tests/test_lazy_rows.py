"""Rows that are read when they are needed: indexed, joined and saved like the array they are read from."""

import copy
import pickle

import numpy as np
import pytest
import torch

from driftline.io import serialization
from driftline.lazy_rows import LazyRows
from driftline.types import Samples, concat_rows, take_rows

ARRAY = np.arange(60, dtype=np.uint8).reshape(10, 2, 3)


class Counted:
    """An array that counts how many of its rows are read."""

    shape, dtype = ARRAY.shape, ARRAY.dtype

    def __init__(self):
        self.n_read = 0

    def __getitem__(self, rows):
        self.n_read += len(rows)
        return ARRAY[rows]


@pytest.mark.parametrize(
    "index",
    [
        *(3, -1, np.int64(2), (3, slice(None), 1), (slice(1, 4), 0), slice(2, 7), slice(None, None, -2)),
        *(np.array([4, 4, 0]), np.arange(10) % 3 == 0, torch.tensor([9, 1]), np.array([], int)),
    ],
    ids=str,
)
def test_an_index_reads_the_rows_of_the_array(index):
    x = LazyRows.all_of(Counted())
    np.testing.assert_array_equal(x[index], ARRAY[np.asarray(index) if isinstance(index, torch.Tensor) else index])
    assert x.source.n_read == np.size(np.arange(10)[index[0] if isinstance(index, tuple) else index])


def test_taking_and_joining_read_nothing():
    x = LazyRows.all_of(Counted())
    samples = Samples(x, np.arange(10))
    joined = Samples.concat([samples[7:], samples[[1, 0]]])
    taken = take_rows(concat_rows([joined.x, x]), np.array([0, 4, 5]))
    assert x.source.n_read == 0
    assert (taken.shape, taken.ndim, taken.dtype, len(taken)) == ((3, 2, 3), 3, np.uint8, 3)
    np.testing.assert_array_equal(taken, ARRAY[[7, 0, 0]])
    assert x.source.n_read == 3


def test_rows_of_several_sources_and_arrays_are_joined():
    x, other = (LazyRows.all_of(Counted()) for _ in range(2))
    for parts in ([x, other], [x, ARRAY], [ARRAY, x]):
        np.testing.assert_array_equal(concat_rows(parts), np.concatenate([ARRAY, ARRAY]))


def test_blocks_hold_a_bounded_number_of_bytes(monkeypatch):
    monkeypatch.setattr("driftline.lazy_rows.BLOCK_BYTES", 20)
    blocks = list(LazyRows.all_of(Counted()).blocks())
    assert [len(block) for block in blocks] == [3, 3, 3, 1]
    np.testing.assert_array_equal(np.concatenate(blocks), ARRAY)


def test_saved_as_an_array(tmp_path):
    x = LazyRows.all_of(ARRAY).take([2, 5])
    serialization.save({"x": serialization.to_tree(x)}, tmp_path / "x")
    np.testing.assert_array_equal(serialization.load(tmp_path / "x")["x"], ARRAY[[2, 5]])
    assert serialization.digest(x) == serialization.digest(ARRAY[[2, 5]])


def test_a_copy_shares_the_source():
    x = LazyRows.all_of(ARRAY)
    assert copy.deepcopy(x).source is ARRAY
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x))[:], ARRAY)
