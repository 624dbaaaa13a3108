"""Features in blocks of a fixed size."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from driftline import models
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.training.cached_features import (
    FEATURE_BATCH,
    extract_features,
    extract_features_fixed_batch,
    macs_per_sample,
)
from driftline.training.mac_counter import MacCounter


def test_blocks_are_always_full_and_hold_the_features() -> None:
    model, x = models.build("mlp", (6,), 3, Seed(0)), torch.randn(FEATURE_BATCH + 3, 6)
    blocks = extract_features_fixed_batch(model, x)
    assert [len(block) for block in blocks] == [FEATURE_BATCH, FEATURE_BATCH]
    torch.testing.assert_close(torch.cat(blocks)[: len(x)], extract_features(model, x))
    assert torch.equal(blocks[1][2:], blocks[1][2].expand(FEATURE_BATCH - 2, -1))  # filled up with the last sample
    assert extract_features_fixed_batch(model, x[:0]) == []


def test_a_pass_that_ends_early_leaves_no_trace() -> None:
    model, meter = models.build("mlp", (6,), 3, Seed(0)).train(), MacCounter()
    meter.attach(model)
    extract_features_fixed_batch(model, torch.randn(5, 6))
    assert (meter.forward, model.training, model(torch.randn(5, 6)).requires_grad) == (0, True, True)


def test_the_cost_of_one_sample_has_the_last_layer_in_it() -> None:
    model = models.build("linear", (6,), 3, Seed(0))
    assert (macs_per_sample(model, torch.randn(5, 6)), macs_per_sample(model, torch.zeros(0, 6))) == (18, 0)


class Idle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_a_last_layer_that_is_never_called_is_refused() -> None:
    with pytest.raises(UserError, match="Idle does not use its last linear layer"):
        extract_features_fixed_batch(Idle(), torch.zeros(1, 2))
