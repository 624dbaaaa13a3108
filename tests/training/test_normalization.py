"""Normalisation layers."""

from __future__ import annotations

import torch
from torch import nn

from driftline.training.normalization import (
    affine_parameters,
    last_block,
    mean_scale_per_block,
    norm_layers,
    use_batch_statistics,
    work_around_group_norm_bug,
)


def test_all_three_kinds_are_found_in_order() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4), nn.LayerNorm(4), nn.GroupNorm(2, 4, affine=False))
    assert list(norm_layers(model)) == ["0", "2", "3"]
    assert [tuple(w.shape) for w in affine_parameters(norm_layers(model).values())] == [(4,)] * 4


def test_batch_statistics_are_used_in_both_modes_and_leave_no_trace() -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.LayerNorm(3))
    x = 5 + 2 * torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    running = model.eval()(x)
    assert use_batch_statistics(model) == 1
    assert set(model.state_dict()) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    in_eval, in_train = model.eval()(x), model.train()(x)
    by_hand = model[1]((x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt())
    torch.testing.assert_close(in_eval, by_hand)
    assert torch.equal(in_eval, in_train)
    assert not torch.allclose(running, in_eval)


def test_the_last_block() -> None:
    assert last_block(["a.blocks.0.norm1", "a.blocks.11.norm1", "a.blocks.11.norm2"]) == {
        "a.blocks.11.norm1",
        "a.blocks.11.norm2",
    }
    assert last_block(["blocks.0.norm1", "norm"]) == {"norm"}
    assert last_block(["bn1", "network.layer3.0.bn1", "network.layer3.2.bn2"]) == {
        "network.layer3.0.bn1",
        "network.layer3.2.bn2",
    }


def test_sizes_of_scales_are_means_over_a_block() -> None:
    model = nn.ModuleDict({"stem": nn.BatchNorm2d(2), "layer1": nn.Sequential(nn.LayerNorm(3), nn.LayerNorm(1))})
    model["last"] = nn.GroupNorm(1, 4, affine=False)
    with torch.no_grad():
        model["stem"].weight.copy_(torch.tensor([-3.0, 1.0]))
        model["layer1"][1].weight.fill_(5.0)
    assert mean_scale_per_block(model) == {"stem": 2.0, "layer1": 2.0}


def test_guarded_group_norm_gives_the_same_numbers_and_survives_its_backward_pass() -> None:
    model = nn.Sequential(nn.GroupNorm(2, 4))
    x = torch.randn(3, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    plain = torch.autograd.grad(model(x).square().sum(), list(model.parameters()))
    work_around_group_norm_bug(model)
    last = x.contiguous(memory_format=torch.channels_last)
    assert len(plain) == 2
    for one, other in zip(
        torch.autograd.grad(model(last).square().sum(), list(model.parameters())), plain, strict=True
    ):
        torch.testing.assert_close(one, other)
