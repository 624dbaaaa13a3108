"""GEM against its worked example, the conditions of the least change, and trainings in plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.learners.supervised.a_gem import AGEM, project_gradient
from driftline.learners.supervised.ft import FineTune
from driftline.learners.supervised.gem import GEM, dual_weights, project_onto_cone

GRAD, EARLIER = torch.tensor([-1.0, 0.5]), torch.tensor([[1.0, 0.0], [0.6, 0.8]])
ROUNDS = [([1.0, 0.5], 1.0), ([0.5, 1.0], -2.0), ([1.0, 1.0], -5.0)]  # one sample each: later ones pull against earlier
LR, UPDATES = 0.1, 4


def test_the_worked_example() -> None:
    """One projection after the other would give (0, .66), the mean gradient of A-GEM (-.4, .8)."""
    assert project_onto_cone(GRAD, EARLIER, 0.0).tolist() == pytest.approx([0, 0.5], abs=1e-6)
    assert project_onto_cone(GRAD, EARLIER, 0.5).tolist() == pytest.approx([0, 0.9], abs=1e-6)
    assert project_gradient(GRAD, EARLIER.mean(0)).tolist() == pytest.approx([-0.4, 0.8], abs=1e-6)
    after_another = project_gradient(project_gradient(GRAD, EARLIER[1]), EARLIER[0])
    assert after_another.tolist() == pytest.approx([0, 0.66], abs=1e-6)


def test_without_a_conflict_the_gradient_stays_whatever_the_margin() -> None:
    grad = torch.tensor([1.0, 0.0])
    assert project_onto_cone(grad, EARLIER, 0.5) is grad


@pytest.mark.parametrize("margin", [0.0, 0.5])
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_the_solution_meets_the_conditions_of_a_minimum(rows: int, margin: float) -> None:
    """With u = v - margin: u >= 0, the slope Gv + p >= 0, and one of the two is 0; also with equal and close rows."""
    rng = np.random.default_rng(rows)
    g = rng.normal(size=(rows, 12))
    g[-1] = g[0]
    if rows > 2:
        g[1] = g[0] + 1e-3 * rng.normal(size=12)
    products = g @ rng.normal(size=12)
    gram = g @ g.T
    u = dual_weights(gram, products, margin)
    slope = gram @ (u + margin) + products
    assert u.min() >= 0
    assert slope.min() > -1e-8
    assert np.abs(u * slope).max() < 1e-8


def best_by_search(grad: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """The nearest vector in the plane without a conflict: g itself, or on an edge of the cone, or 0."""
    found = [grad, np.zeros(2), *(grad - grad @ e / (e @ e) * e for e in earlier)]
    allowed = [one for one in found if (earlier @ one > -1e-9).all()]
    return min(allowed, key=lambda one: float(np.square(one - grad).sum()))


def expected() -> np.ndarray:
    w, projected = np.zeros(2), 0
    rounds = [(np.array(x), y) for x, y in ROUNDS]
    for k, (x, y) in enumerate(rounds):
        for _ in range(UPDATES):
            grad = (w @ x - y) * x
            if k:
                old = np.array([(w @ a - b) * a for a, b in rounds[:k]])
                moved = best_by_search(grad, old)
                projected += not np.allclose(moved, grad)
                grad = moved
            w = w - LR * grad
    assert projected >= UPDATES
    return w


class Squares:
    width = 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        return y

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs[:, 0] - y).square() / 2


def learned(kind: type[GEM], rounds: Any = ROUNDS, **settings: Any) -> Any:
    learner = kind(lr=LR, updates=UPDATES, batch=3, optimizer="sgd", **settings)
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    learner.prepare(model, Squares())  # type: ignore[arg-type]
    for x, y in rounds:
        learner.learn(np.array([x], np.float32), np.array([y], np.float32))
    return learner


def check(kind: type[GEM]) -> None:
    learner = learned(kind, margin=0.0)
    np.testing.assert_allclose(learner.model.weight.detach()[0], expected(), rtol=1e-4, atol=1e-6)


class NoProjection(GEM):
    update = FineTune.update  # type: ignore[assignment]


class ConstrainedByThePresent(GEM):
    def learn(self, x: Any, y: Any) -> None:
        self.memories.append((x, y))
        self.train(x, y)


class OneMemory(GEM):
    """All earlier rounds as one constraint, which is A-GEM on the whole memory."""

    def learn(self, x: Any, y: Any) -> None:
        super().learn(x, y)
        self.memories = [tuple(np.concatenate(parts) for parts in zip(*self.memories, strict=True))]  # type: ignore[misc]


def test_three_training_rounds_by_hand() -> None:
    check(GEM)


@pytest.mark.parametrize("wrong", [NoProjection, OneMemory])
def test_a_wrong_version_would_be_noticed(wrong: type[GEM]) -> None:
    with pytest.raises(AssertionError):
        check(wrong)


def check_margin(kind: type[GEM]) -> None:
    """Against one memory, v is the larger of the margin and what lifts the product to 0."""
    (a, b), (x, y) = rounds = [([1.0, 0.5], 1.0), ([0.5, 1.0], -2.0)]
    w, lifted = np.zeros(2), set()
    for _ in range(UPDATES):
        w = w - LR * (w @ a - b) * np.array(a)
    for _ in range(UPDATES):
        grad, old = (w @ x - y) * np.array(x), (w @ a - b) * np.array(a)
        if grad @ old < 0:
            v = max(0.5, -grad @ old / (old @ old))
            lifted.add(v == 0.5)
            grad = grad + v * old
        w = w - LR * grad
    assert lifted
    learner = learned(kind, rounds, margin=0.5)
    np.testing.assert_allclose(learner.model.weight.detach()[0], w, rtol=1e-4, atol=1e-6)


def test_the_margin_by_hand() -> None:
    check_margin(GEM)
    with pytest.raises(AssertionError):
        check_margin(ConstrainedByThePresent)


@pytest.mark.parametrize("kind", [GEM, AGEM])
def test_a_memory_of_one_sample_passes_through_batch_norm(kind: type[GEM | AGEM]) -> None:
    torch.manual_seed(0)
    learner = kind(updates=2, batch=2)
    network = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    learner.prepare(network, Squares())  # type: ignore[arg-type]
    for k in range(3):
        learner.learn(np.ones((1, 2), np.float32), np.array([k], np.float32))
    norm, (x, y) = network.train()[1], (np.ones((1, 2), np.float32), np.array([2.0], np.float32))
    error = network[2](norm.bias).item() - y[0]  # of two equal rows, batch norm leaves its shift
    expected = error * network[2].weight.detach()[0]
    np.testing.assert_allclose(learner.memory_gradient(x, y)[-9:-5], expected, rtol=1e-3)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_training_that_diverged_goes_on_as_without_a_projection(number: float) -> None:
    grad = torch.tensor([number, -1.0])
    assert project_onto_cone(grad, EARLIER, 0.5) is grad
    assert project_onto_cone(GRAD, torch.tensor([[number, 0.0], [0.6, 0.8]]), 0.5) is GRAD


def test_a_memory_has_the_latest_samples_and_the_oldest_memories_are_joined() -> None:
    learner = GEM(updates=0, capacity=3, max_memories=2)
    learner.prepare(nn.Linear(2, 1), Squares())  # type: ignore[arg-type]
    for k in range(3):
        learner.learn(np.zeros((4, 2), np.float32), np.arange(4.0 * k, 4 * k + 4))
    assert [y.tolist() for _, y in learner.memories] == [[5, 6, 7], [9, 10, 11]]
    one = GEM(updates=0, capacity=3, max_memories=2)
    one.prepare(nn.Linear(2, 1), Squares())  # type: ignore[arg-type]
    for k in range(3):
        one.learn(np.zeros((2, 2), np.float32), np.arange(2.0 * k, 2 * k + 2))
    assert [y.tolist() for _, y in one.memories] == [[1, 2, 3], [4, 5]]
