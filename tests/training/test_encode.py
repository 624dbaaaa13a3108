"""Features in blocks of a fixed size."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from driftline import models
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.training.encode import TOGETHER, cost_of_one, embed, embed_in_blocks
from driftline.training.meter import Meter


def test_blocks_are_always_full_and_hold_the_features() -> None:
    model, x = models.build("mlp", (6,), 3, Seed(0)), torch.randn(TOGETHER + 3, 6)
    blocks = embed_in_blocks(model, x)
    assert [len(block) for block in blocks] == [TOGETHER, TOGETHER]
    torch.testing.assert_close(torch.cat(blocks)[: len(x)], embed(model, x))
    assert torch.equal(blocks[1][2:], blocks[1][2].expand(TOGETHER - 2, -1))  # filled up with the last sample
    assert embed_in_blocks(model, x[:0]) == []


def test_a_pass_that_ends_early_leaves_no_trace() -> None:
    model, meter = models.build("mlp", (6,), 3, Seed(0)).train(), Meter()
    meter.attach(model)
    embed_in_blocks(model, torch.randn(5, 6))
    assert (meter.forward, model.training, model(torch.randn(5, 6)).requires_grad) == (0, True, True)


def test_the_cost_of_one_sample_has_the_last_layer_in_it() -> None:
    model = models.build("linear", (6,), 3, Seed(0))
    assert (cost_of_one(model, torch.randn(5, 6)), cost_of_one(model, torch.zeros(0, 6))) == (18, 0)


class Idle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_a_last_layer_that_is_never_called_is_refused() -> None:
    with pytest.raises(UserError, match="Idle does not use its last linear layer"):
        embed_in_blocks(Idle(), torch.zeros(1, 2))
