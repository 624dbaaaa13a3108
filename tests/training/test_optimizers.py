"""torch's optimizers by name, and schedules."""

from __future__ import annotations

import copy
import math
import typing
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from driftline.learners.replay.cft import CFT
from driftline.learners.settings import OptimizerName
from driftline.learners.supervised.ft import FineTune
from driftline.learners.test_time.cotta import CoTTA
from driftline.learners.test_time.slr import SLR
from driftline.learners.test_time.tent import Tent
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression, TextToText, mean_loss
from driftline.training.optimizers import AMSGRAD, NAMES, lr_factor, new_optimizer
from driftline.types import Samples

NEEDS_MORE = {"LBFGS", "SparseAdam", "Muon"}  # the loss itself, sparse gradients, matrices
TASK = Classification(("a", "b"))
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 6)).astype(np.float32), RNG.integers(0, 2, 30)


def network() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).eval()


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def descend(model: nn.Module, optimizer: Optimizer, steps: int = 20) -> torch.Tensor:
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    for k in range(steps):
        rows = torch.arange(8) + k
        optimizer.zero_grad()
        TASK.loss(model(x[rows]), y[rows]).mean().backward()
        optimizer.step()
    return weights(model)


def test_every_optimizer_of_torch_has_its_name() -> None:
    known = [kind for kind in vars(torch.optim).values() if isinstance(kind, type) and issubclass(kind, Optimizer)]
    assert {kind.__name__ for kind in known} - {"Optimizer"} - NEEDS_MORE == set(NAMES)
    assert {name.lower() for name in NAMES} == set(typing.get_args(OptimizerName)) - {AMSGRAD}


def test_amsgrad_is_adams_variant() -> None:
    ours, plain = network(), network()
    optimizer = new_optimizer("amsgrad", ours.parameters(), lr=0.05)
    expected = torch.optim.Adam(plain.parameters(), lr=0.05, amsgrad=True, foreach=False)
    assert torch.equal(descend(ours, optimizer), descend(plain, expected))
    assert not torch.equal(weights(ours), descend(network(), torch.optim.Adam(network().parameters(), lr=0.05)))


def test_the_learning_rate_decays_after_each_training_round() -> None:
    """As StepLR with one step per round does; training from scratch starts again, and a checkpoint continues."""
    learner, same = FineTune(lr=0.1, lr_decay=0.5, updates=1), FineTune(lr=0.1, lr_decay=0.5, updates=1)
    for one in (learner, same):
        one.prepare(network(), TASK)
    rates = []
    for _ in range(3):
        rates.append(learner.optim.param_groups[0]["lr"])
        learner.learn(X, Y)
    assert rates == [0.1, 0.05, 0.025]
    same.restore(copy.deepcopy(learner.state()))
    for one in (learner, same):
        assert one.optim.param_groups[0]["lr"] == 0.0125
        one.learn(X, Y)
    assert torch.equal(weights(learner.model), weights(same.model))
    learner.train_from_scratch(X, Y)
    assert learner.optim.param_groups[0]["lr"] == 0.05


@pytest.mark.parametrize("name", NAMES)
def test_it_is_torchs_own(name: str) -> None:
    """With the settings that it takes; where it has betas, the momentum is the first of them."""
    ours, plain = network(), network()
    settings: dict[str, Any] = {"lr": 0.01, "weight_decay": 0.1, "momentum": 0.8}
    optimizer = new_optimizer(name.lower(), ours.parameters(), **settings)
    kind = getattr(torch.optim, name)
    taken = {key: value for key, value in settings.items() if key in optimizer.defaults}
    taken |= {"betas": (0.8, 0.999)} if "betas" in optimizer.defaults else {}
    assert isinstance(optimizer, kind)
    assert torch.equal(descend(ours, optimizer), descend(plain, kind(plain.parameters(), **taken, foreach=False)))


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("name", ["Adam", "SGD"])
def test_the_faster_way_of_descending_gives_the_same_bits(name: str, weight_decay: float) -> None:
    model, other = network(), network()
    for one in (model, other):
        one[2].bias.requires_grad_(False)  # a weight without a gradient is left where it is
    ours = new_optimizer(name.lower(), model.parameters(), lr=0.01, weight_decay=weight_decay)
    kind = getattr(torch.optim, name)
    plain = kind(other.parameters(), lr=0.01, weight_decay=weight_decay, foreach=False)
    assert torch.equal(descend(model, ours, 22), descend(other, plain, 22))


def test_groups_keep_their_own_rate() -> None:
    first, second = (list(part.parameters()) for part in (network()[0], network()[2]))
    groups = new_optimizer("adamw", [{"params": first, "lr": 0.5}, {"params": second}], lr=0.1).param_groups
    assert [group["lr"] for group in groups] == [0.5, 0.1]
    assert groups[0]["weight_decay"] == 0.0, "and not torch's default of 0.01"


@pytest.mark.parametrize(("method", "kind"), [(Tent, "SGD"), (SLR, "Adam"), (CoTTA, "SGD")])
def test_test_time_methods_take_any_optimizer(method: Any, kind: str) -> None:
    usual, other = method(), method(optimizer="adamw", lr=0.02, momentum=0.7)
    for learner in (usual, other):
        learner.prepare(network(), TASK)
    assert type(usual.optim).__name__ == kind
    assert isinstance(other.optim, torch.optim.AdamW)
    assert (other.optim.defaults["betas"], other.optim.defaults["weight_decay"]) == ((0.7, 0.999), 0.0)


def test_tent_with_adam_is_one_step_of_adam_on_the_entropy() -> None:
    """Adam's first step moves every weight by lr against the sign of its slope."""
    learner = Tent(optimizer="adam", lr=0.01)
    learner.prepare(network(), TASK)
    norm = learner.model[1]
    before = norm.weight.detach().clone(), norm.bias.detach().clone()
    log_p = learner.model(torch.from_numpy(X)).log_softmax(1)
    slopes = torch.autograd.grad(-(log_p.exp() * log_p).sum(1).mean(), [norm.weight, norm.bias])
    learner.answer(X)
    for start, slope, weight in zip(before, slopes, (norm.weight, norm.bias), strict=True):
        torch.testing.assert_close(weight.detach(), start - 0.01 * slope.sign(), atol=1e-5, rtol=0)


def test_sgd_with_momentum_for_supervised_methods() -> None:
    learner = FineTune(optimizer="sgd", momentum=0.9)
    learner.prepare(network(), TASK)
    assert learner.optim.defaults["momentum"] == 0.9
    usual = FineTune()
    usual.prepare(network(), TASK)
    assert usual.optim.defaults["betas"] == (0.9, 0.999)


def refine(steps: int = 3, **settings: Any) -> CFT:
    learner = CFT(epochs=1, batch=10, **settings)
    learner.seed = Seed(1)
    learner.prepare(network(), TASK, Samples(X, Y))
    for _ in range(steps):
        learner.learn(X, Y)
    return learner


def test_the_learning_rate_follows_its_schedule_over_the_whole_stream() -> None:
    learner = refine(steps=0, lr=0.1, lr_schedule="linear", lr_updates=10, warmup_updates=2, optimizer="sgd")
    rates = []
    learner.optim.register_step_post_hook(lambda *_: rates.append(learner.optim.param_groups[0]["lr"]))
    for _ in range(4):
        learner.learn(X, Y)  # three mini-batches each
    expected = [0.0, 0.5, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.0, 0.0]
    np.testing.assert_allclose(rates, 0.1 * np.array(expected))


def test_a_resumed_schedule_goes_on() -> None:
    settings: dict[str, Any] = {"lr": 0.1, "lr_schedule": "cosine", "lr_updates": 12}
    whole, first, second = refine(4, **settings), refine(2, **settings), refine(0, **settings)
    second.restore(first.state())
    for _ in range(2):
        second.learn(X, Y)
    assert torch.equal(weights(whole.model), weights(second.model))


def test_defaults_change_nothing_and_warm_up_alone_ends_at_the_full_rate() -> None:
    assert [lr_factor("constant", k, updates=1, warmup=0) for k in (0, 5, 50)] == [1.0, 1.0, 1.0]
    assert [lr_factor("constant", k, updates=1, warmup=4) for k in (0, 1, 4, 9)] == [0.0, 0.25, 1.0, 1.0]


def test_label_smoothing_by_hand() -> None:
    outputs, y = torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])
    log_p = outputs.log_softmax(1)[0]
    expected = -(0.9 * log_p[0] + 0.1 * log_p.mean())
    assert mean_loss(Classification(tuple("abc")), outputs, y, 0.1).item() == pytest.approx(expected.item())
    tokens = mean_loss(TextToText(), outputs[:, None], y[:, None], 0.1)
    assert tokens.item() == pytest.approx(expected.item())
    with pytest.raises(Exception, match=r"label_smoothing=0\.1: only classes and texts can be smoothed"):
        mean_loss(Regression(), outputs[:, :1], y, 0.1)
    assert not torch.equal(weights(refine(1).model), weights(refine(1, label_smoothing=0.1).model))


def test_upstream_fisher_holds_the_first_step() -> None:
    """Without it the first step has no penalty; with it, a strong one keeps the weights that upstream data need."""
    free, held = (
        refine(1, penalty="ewc", penalty_weight=1e6, lr=0.01, optimizer="sgd", max_grad_norm=0.1, fisher_from=source)
        for source in ("errors", "upstream")
    )
    start = weights(network())
    plain = refine(1, lr=0.01, optimizer="sgd", max_grad_norm=0.1)
    assert torch.equal(weights(free.model), weights(plain.model))
    assert not torch.equal(weights(held.model), weights(plain.model))
    assert held.importance is not None
    assert math.isfinite(held.importance.sum().item())
    assert not torch.equal(weights(held.model), start)


def test_upstream_fisher_needs_upstream_samples() -> None:
    learner = CFT(penalty="ewc", fisher_from="upstream")
    learner.prepare(network(), TASK)
    with pytest.raises(Exception, match="fisher_from=upstream needs upstream samples, and there are none"):
        learner.learn(X, Y)
