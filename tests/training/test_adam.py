"""Adam: the same bits as torch's, whatever the gradients are."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from driftline.training import adam, lean_optimizer
from driftline.training.adam import Adam, AdamW
from driftline.training.optimizers import AMSGRAD, new_optimizer

TORCH: dict[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, AMSGRAD: torch.optim.Adam}


def network(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = (nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
        return nn.Sequential(*layers).to(dtype=dtype, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def torchs(name: str, model: nn.Module, **settings: float) -> torch.optim.Optimizer:
    optimizer: torch.optim.Optimizer = TORCH[name](
        model.parameters(), foreach=False, amsgrad=name == AMSGRAD, **settings
    )
    return optimizer


def descend(model: nn.Module, optimizer: torch.optim.Optimizer, scale: float = 1.0, start: int = 0) -> torch.Tensor:
    """Return the weights after 12 steps; parts of the inputs are 0, and one weight has no gradient now and then."""
    random = torch.Generator().manual_seed(start)
    weights = list(model.parameters())
    for k in range(12):
        x = torch.rand(5, 2, 6, 6, generator=random).to(weights[0].dtype)
        x[:, :, :4] = 0
        optimizer.zero_grad()
        (scale * nn.functional.cross_entropy(model(x), torch.randint(3, (5,), generator=random))).backward()
        if k % 4 == 1:
            weights[0].grad = None
        optimizer.step()
    return torch.cat([weight.detach().flatten() for weight in weights])


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e-16, 1e-21])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("name", TORCH)
def test_it_is_torchs_to_the_bit(name: str, weight_decay: float, scale: float) -> None:
    """Also where mean squares are as small as those that count as zero."""
    ours, plain = network(), network()
    optimizer = new_optimizer(name, ours.parameters(), lr=0.01, weight_decay=weight_decay)
    expected = torchs(name, plain, lr=0.01, weight_decay=weight_decay)
    assert type(optimizer) is (AdamW if name == "adamw" else Adam)
    assert torch.equal(descend(ours, optimizer, scale), descend(plain, expected, scale))


def test_what_counts_as_zero_is_small_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adam, "SMALL", 2.0**-90)
    ours, plain = network(), network()
    optimizer = new_optimizer("adam", ours.parameters(), lr=0.01)
    assert not torch.equal(descend(ours, optimizer, 1e-12), descend(plain, torchs("adam", plain, lr=0.01), 1e-12))


def test_many_weights_go_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_optimizer, "TOGETHER", 80)
    ours, plain = network(), network()
    sizes = [[weight.numel() for weight in part] for part in lean_optimizer.portions(_with_gradients(ours))]
    assert sizes == [[72, 4, 4], [4], [192], [3]]
    optimizer = new_optimizer("adam", ours.parameters(), lr=0.01)
    assert torch.equal(descend(ours, optimizer), descend(plain, torchs("adam", plain, lr=0.01)))


def _with_gradients(model: nn.Module) -> list[torch.Tensor]:
    copied = list(copy.deepcopy(model).parameters())
    for weight in copied:
        weight.grad = torch.zeros_like(weight)
    return list(copied)


def test_it_continues_from_a_saved_state_and_calls_hooks_once() -> None:
    ours, plain = network(), network()
    optimizer, expected = new_optimizer("adam", ours.parameters(), lr=0.01), torchs("adam", plain, lr=0.01)
    descend(ours, optimizer)
    descend(plain, expected)
    again = new_optimizer("adam", ours.parameters(), lr=0.5)
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    called: list[str] = []
    again.register_step_pre_hook(lambda *_: called.append("before"))
    again.register_step_post_hook(lambda *_: called.append("after"))
    assert torch.equal(descend(ours, again, start=1), descend(plain, expected, start=1))
    assert called == ["before", "after"] * 12


def test_a_closure_is_evaluated_with_gradients() -> None:
    weight = nn.Parameter(torch.ones(1))
    optimizer = new_optimizer("adam", [weight], lr=0.5)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (3 * weight).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 3.0
    assert weight.item() == pytest.approx(0.5)


def test_double_precision_is_left_to_torch() -> None:
    assert type(new_optimizer("adam", network(torch.float64).parameters(), lr=0.1)) is torch.optim.Adam


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_are_forgotten(to_none: bool) -> None:
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    new_optimizer("adam", [weight], lr=0.5).zero_grad(to_none)
    assert weight.grad is None if to_none else torch.equal(weight.grad, torch.zeros(2))
