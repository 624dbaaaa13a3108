"""Iterations of training and evaluation."""

from __future__ import annotations

import pytest
import torch

from driftline.seeds import Seed
from driftline.training.batches import count_batches, infinite_batches, map_batches, shuffled_batches


def test_an_epoch_is_every_row_once() -> None:
    parts = list(shuffled_batches(250, 100, Seed(1)))
    assert [len(part) for part in parts] == [100, 100, 50]
    assert torch.cat(parts).sort().values.tolist() == list(range(250))
    assert torch.cat(parts).tolist() != list(range(250))


@pytest.mark.parametrize(("rows", "sizes"), [(201, [100, 101]), (1, [2]), (101, [101])])
def test_no_batch_has_a_single_row(rows: int, sizes: list[int]) -> None:
    assert [len(part) for part in shuffled_batches(rows, 100, Seed(1))] == sizes


def test_batches_without_end_pass_over_all_rows_again_in_another_order() -> None:
    batches = infinite_batches(4, 2, Seed(3))
    passes = [torch.cat([next(batches), next(batches)]) for _ in range(6)]
    assert all(sorted(one.tolist()) == [0, 1, 2, 3] for one in passes)
    assert len({tuple(one.tolist()) for one in passes}) > 1


@pytest.mark.parametrize("batch", [1, 2, 3, 7])
def test_batches_are_counted_without_making_them(batch: int) -> None:
    for rows in range(1, 12):
        assert count_batches(rows, batch) == len(list(shuffled_batches(rows, batch, Seed(1))))
    assert len(list(shuffled_batches(9, 3, Seed(1), limit=2))) == 2


def test_outputs_of_batches_are_the_outputs_of_all_rows() -> None:
    x = torch.arange(10.0).reshape(5, 2)
    assert map_batches(lambda rows: rows * 2, x, 2).tolist() == (x * 2).tolist()
    assert map_batches(lambda rows: rows * 2, x[:0], 2).shape == (0, 2)
