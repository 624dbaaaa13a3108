"""Gradients, penalties and Fisher information against closed forms."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.testing import digest
from driftline.testing.fixtures import small_network
from driftline.training.fisher import fisher
from driftline.training.fit import optimizer_step
from driftline.training.mac_counter import MacCounter
from driftline.training.regularization import (
    flatten,
    gradient,
    quadratic_penalty,
    step_with_gradient,
    trainable_parameters,
)

TASK = Classification(("a", "b", "c"))
RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 256, (12, 8, 8, 1), dtype=np.uint8), RNG.integers(0, 3, 12)
INPUTS = torch.from_numpy(X).permute(0, 3, 1, 2) / 255


class Unit(nn.Module):
    """A logistic unit: P(class 1) = sigmoid(w x)."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(weights))

    def forward(self, x: Tensor) -> Tensor:
        logit = x @ self.w
        return torch.stack([torch.zeros_like(logit), logit], dim=1)


def network() -> nn.Module:
    return small_network((8, 8, 1), 3, Seed(5))


def test_gradient_of_a_linear_model() -> None:
    model, unused = nn.Linear(2, 1), nn.Parameter(torch.ones(3))
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    loss = (model(torch.tensor([[2.0, 3.0]])) - 1).square().sum() / 2
    assert gradient(loss, [*trainable_parameters(model), unused]).tolist() == [-2.0, -3.0, -1.0, 0.0, 0.0, 0.0]
    assert model.weight.grad is None


def test_flat_is_in_logical_order_whatever_the_memory_layout() -> None:
    weight = torch.arange(24.0).reshape(1, 2, 3, 4)
    assert flatten([weight.to(memory_format=torch.channels_last)]).tolist() == list(range(24))


def test_frozen_weights_are_no_part_of_it() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    assert trainable_parameters(model) == list(model[1].parameters())
    x, y = np.ones((3, 2), np.float32), np.zeros(3)
    assert fisher(model, Regression(), x, y, labels="empirical", seed=Seed(0)).shape == (3,)


def test_descending_along_the_gradient_is_descending() -> None:
    ends = []
    for way in ("descend", "along"):
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            loss = TASK.loss(model(INPUTS), torch.from_numpy(Y)).mean()
            if way == "descend":
                optimizer_step(optimizer, loss)
            else:
                step_with_gradient(optimizer, trainable_parameters(model), gradient(loss, trainable_parameters(model)))
        ends.append(digest(dict(model.state_dict())))
    assert ends[0] == ends[1]


def test_penalty_and_its_gradient() -> None:
    weights = torch.tensor([1.0, -2.0, 4.0], requires_grad=True)
    anchor, importance = torch.tensor([0.0, 1.0, 4.0]), torch.tensor([2.0, 0.5, 9.0])
    value = quadratic_penalty(weights, anchor, importance)
    assert value.item() == 2 * 1 + 0.5 * 9
    assert gradient(value, [weights]).tolist() == [2 * 2 * 1, 2 * 0.5 * -3, 0]
    assert quadratic_penalty(weights, anchor, 1.0).item() == 1 + 9


Fisher = Callable[..., Tensor]


def check_logistic_unit(fisher: Fisher) -> None:
    """F = mean (label - p)^2 x^2."""
    w, xs, ys = 0.7, [1.0, -2.0, 3.0], [1, 1, 0]
    p = [1 / (1 + math.exp(-w * x)) for x in xs]
    labels = {"empirical": ys, "predicted": [round(q) for q in p]}
    for kind, label in labels.items():
        expected = sum(((k - q) * x) ** 2 for x, k, q in zip(xs, label, p, strict=True)) / 3
        x, y = np.array(xs, np.float32)[:, None], np.array(ys)
        found = fisher(Unit(w), Classification(("a", "b")), x, y, labels=kind, seed=Seed(0))
        assert found.item() == pytest.approx(expected, rel=1e-5)
    assert labels["empirical"] != labels["predicted"]


def square_of_the_batch_gradient(model: Any, task: Any, x: Any, y: Any, *, labels: Any, seed: Any) -> Tensor:
    return gradient(
        task.loss(model(torch.from_numpy(x)), torch.from_numpy(y)).mean(), trainable_parameters(model)
    ).square()


def always_true_labels(model: Any, task: Any, x: Any, y: Any, *, labels: Any, seed: Any) -> Tensor:
    return fisher(model, task, x, y, labels="empirical", seed=seed)


def a_sum_instead_of_a_mean(*args: Any, **settings: Any) -> Tensor:
    return fisher(*args, **settings) * len(args[2])


def test_fisher_of_a_logistic_unit() -> None:
    check_logistic_unit(fisher)


@pytest.mark.parametrize("wrong", [square_of_the_batch_gradient, always_true_labels, a_sum_instead_of_a_mean])
def test_a_wrong_fisher_would_be_noticed(wrong: Fisher) -> None:
    with pytest.raises(AssertionError):
        check_logistic_unit(wrong)


def test_sampled_labels_give_the_true_information() -> None:
    w, n, task = 1.2, 1000, Classification(("a", "b"))
    x, y = np.full((n, 1), 2.0), np.zeros(n, int)
    p = 1 / (1 + math.exp(-2 * w))
    found = fisher(Unit(w), task, x, y, labels="sampled", seed=Seed(0)).item()
    spread = 4 * abs((1 - p) ** 2 - p**2) * math.sqrt(p * (1 - p) / n)
    assert abs(found - 4 * p * (1 - p)) < 4 * spread
    assert abs(4 * p**2 - 4 * p * (1 - p)) > 20 * spread, "the true labels alone would give another number"
    again, other = (fisher(Unit(w), task, x, y, labels="sampled", seed=Seed(s)).item() for s in (0, 1))
    assert found == again
    assert found != other


def test_fisher_agrees_with_per_example_gradients_by_vmap() -> None:
    model = network()
    weights, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def loss(weights: Any, x: Tensor, y: Tensor) -> Tensor:
        return TASK.loss(torch.func.functional_call(model, (weights, buffers), (x[None],)), y[None]).sum()

    slopes = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weights, INPUTS, torch.from_numpy(Y))
    expected = flatten(slopes[name].square().mean(0) for name in weights)
    for batches in (True, False):
        found = fisher(model, TASK, X, Y, labels="empirical", batches=batches, seed=Seed(0))
        torch.testing.assert_close(found, expected)


def test_fisher_of_a_number_is_in_the_units_of_the_model() -> None:
    """loss = (w x - (y - 10) / 2)^2, so F = (2 (w x - target) x)^2; here w = 0, x = 3, target = 2."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    task = Regression(center=10.0, scale=2.0)
    found = fisher(model, task, np.array([[3.0]]), np.array([14.0]), labels="empirical", seed=Seed(0))
    assert found.tolist() == [144.0]


def test_so_many_examples_are_drawn_without_replacement() -> None:
    task, y = Classification(("a", "b")), np.zeros(6, int)
    x = 2.0 ** np.arange(6)[:, None]  # at w = 0 each example gives x^2 / 4, so a sum tells which were taken

    def taken(examples: int | None, seed: int) -> int:
        found = fisher(Unit(0.0), task, x, y, labels="empirical", examples=examples, seed=Seed(seed)).item()
        return round(found * 4 * min(examples or 6, 6))

    sums = [taken(3, seed) for seed in range(20)]
    assert all(n.bit_count() == 3 and not n & 0b101010101010 for n in sums), "three different powers of four each"
    assert len(set(sums)) > 5
    assert taken(None, 0) == taken(6, 0) == taken(100, 0) == sum(4**k for k in range(6))


def test_fisher_changes_nothing_and_is_counted() -> None:
    model = network()
    model[1].train()
    meter = MacCounter()
    meter.attach(model)
    before, modes = copy.deepcopy(model.state_dict()), [module.training for module in model]
    random = torch.get_rng_state()
    with torch.no_grad():
        fisher(model, TASK, X, Y, labels="sampled", seed=Seed(0))
    assert digest(dict(before)) == digest(dict(model.state_dict()))
    assert modes == [module.training for module in model]
    assert all(weight.grad is None for weight in model.parameters())
    assert torch.equal(random, torch.get_rng_state())
    per_example = 64 * 4 * 9 + 64 * 3
    assert meter.forward == 12 * per_example
    assert meter.backward > meter.forward


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="use 'empirical'"):
        fisher(Unit(0.0), Regression(), X, Y, labels="sampled", seed=Seed(0))
    with pytest.raises(UserError, match="at least 1"):
        fisher(Unit(0.0), TASK, X, Y, labels="empirical", examples=0, seed=Seed(0))
