from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from driftline.errors import UserError
from driftline.learners.domain_generalization.windows import (
    GroupedBatch,
    draw_grouped,
    even_split,
    grouped_batches,
    sliding_windows,
)
from driftline.models.mlp import linear
from driftline.seeds import Seed
from driftline.training.features import forward_with_features, linear_layers
from driftline.training.mac_counter import MacCounter


def test_windows_are_enumerated() -> None:
    assert sliding_windows([2, 3, 4, 5], 2) == [range(0, 5), range(2, 9), range(5, 14)]
    assert sliding_windows([2, 3, 4, 5], 1) == [range(0, 2), range(2, 5), range(5, 9), range(9, 14)]
    assert sliding_windows([2, 3, 4, 5], 4) == sliding_windows([2, 3, 4, 5], 9) == [range(0, 14)]
    assert len(sliding_windows([7] * 41, 5)) == 37  # Yearbook up to 1970


def test_a_new_period_adds_a_window_and_moves_none() -> None:
    lengths = [3, 1, 4, 1, 5, 9, 2]
    for n in range(4, len(lengths)):
        assert sliding_windows(lengths[: n + 1], 3)[:-1] == sliding_windows(lengths[:n], 3)


@pytest.mark.parametrize(("batch", "groups"), [(32, 10), (30, 10), (5, 5), (7, 1)])
def test_shares_are_even_and_whole(batch: int, groups: int) -> None:
    shares = even_split(batch, groups)
    assert sum(shares) == batch
    assert len(shares) == groups
    assert max(shares) - min(shares) <= 1


def test_each_update_draws_different_windows_and_rows_inside_them() -> None:
    windows = sliding_windows([5, 2, 9, 1, 30, 4], 2)
    shares = even_split(8, 3)
    chosen, rows = draw_grouped(windows, shares, 400, Seed(0).torch())
    assert chosen.shape == (400, 3)
    assert rows.shape == (400, 8)
    for line, picked in zip(chosen.tolist(), rows, strict=True):
        assert len(set(line)) == 3
        for window, part in zip(line, picked.split(shares), strict=True):
            assert all(row in windows[window] for row in part.tolist())
    drawn = torch.bincount(chosen.flatten(), minlength=5) / 400
    assert torch.allclose(drawn, torch.full((5,), 3 / 5), atol=0.1)


def test_rows_are_uniform_over_a_windows_examples_and_not_over_its_periods() -> None:
    _, rows = draw_grouped(sliding_windows([1, 9], 2), [10], 3000, Seed(1).torch())
    share = np.bincount(rows.flatten().numpy(), minlength=10) / 30000
    np.testing.assert_allclose(share, 0.1, atol=0.01)  # by periods row 0 would have 0.5


def batches(
    lengths: list[int], *, groups: int = 3, batch: int = 8, updates: int = 5, seed: int = 0
) -> list[GroupedBatch]:
    n = sum(lengths)
    x = np.arange(n, dtype=np.float32)[:, None]
    model = linear((1,), 2, Seed(0))
    windows = sliding_windows(lengths, 2)
    seen = list(grouped_batches(model, x, np.arange(n), windows, groups, updates, batch, Seed(seed), "none"))
    assert len(seen) == updates
    assert not model.training
    assert model[0].fitted  # inputs were measured first
    return seen


@pytest.mark.parametrize("updates", [0, 1, 7])
def test_exactly_so_many_updates(updates: int) -> None:
    assert len(batches([4, 4, 4], updates=updates)) == updates


def test_a_grouped_batch_is_what_it_says() -> None:
    windows = sliding_windows([4, 6, 3, 8, 2], 2)
    for batch in batches([4, 6, 3, 8, 2]):
        assert batch.sizes == [3, 3, 2]
        assert torch.equal(batch.x[:, 0], batch.y.float())
        for window, part in zip(batch.windows.tolist(), batch.split(batch.y), strict=True):
            assert all(row in windows[window] for row in part.tolist())


def test_fewer_windows_than_groups_are_all_drawn_once() -> None:
    for batch in batches([4, 6, 3], groups=10):
        assert sorted(batch.windows.tolist()) == [0, 1]
        assert batch.sizes == [4, 4]


def test_fewer_rows_than_groups_leave_no_group_empty() -> None:
    for batch in batches([4] * 9, groups=10, batch=5):
        assert batch.sizes == [1] * 5


def test_draws_are_named_by_the_seed() -> None:
    first, again, other = (torch.cat([b.y for b in batches([9] * 5, seed=s)]) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


class OutOfOrder(nn.Module):
    """Its classifier is written first and called last."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(3, 2), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.body(x).relu())
        return out


@pytest.mark.parametrize("metered", [False, True])
def test_features_are_what_the_last_linear_layer_sees(metered: bool) -> None:
    model, x = OutOfOrder(), torch.randn(5, 4, generator=Seed(0).torch())
    if metered:  # counting runs a copy of the network within the same pass
        MacCounter().attach(model)
    outputs, features = forward_with_features(model, x)
    assert torch.equal(features, model.body(x).relu())
    assert torch.equal(outputs, model.head(features))
    (slope,) = torch.autograd.grad(features.sum(), model.body.bias)  # part of the graph
    assert torch.equal(slope, (features > 0).float().sum(0))
    assert not model.head._forward_pre_hooks


def test_a_network_without_a_linear_layer_is_refused() -> None:
    with pytest.raises(UserError, match="Sequential has none"):
        linear_layers(nn.Sequential(nn.Conv2d(1, 2, 3)))


def test_every_window_is_reached() -> None:
    counts = Counter(window for batch in batches([4] * 37, updates=100) for window in batch.windows.tolist())
    assert sorted(counts) == list(range(36))
