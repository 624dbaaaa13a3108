"""MAML's inner loop: adapted weights, and the gradient through them, against independent computations."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from driftline.training.maml_inner_loop import InnerLoop

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(6, 3)))
Y = torch.tensor([0, 0, 1, 1, 2, 2])
QUERY = torch.from_numpy(RNG.normal(size=(9, 3)))
TRUTH = torch.arange(3).repeat(3)


def line() -> nn.Sequential:
    """Features W x, then a last layer without bias whose own weights never matter; in double precision."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 2, bias=False), nn.Linear(2, 7, bias=False)).double()


def onehot(y: torch.Tensor) -> np.ndarray:
    return np.eye(3)[y.numpy()]


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def by_hand(w: np.ndarray, steps: int, lr: float) -> tuple[np.ndarray, np.ndarray]:
    """Features' weights and last layer after gradient descent on mean cross-entropy, gradients written out."""
    x, v = X.numpy(), np.zeros((3, 2))
    for _ in range(steps):
        error = (softmax(x @ w.T @ v.T) - onehot(Y)) / len(x)
        w, v = w - lr * (error @ v).T @ x, v - lr * error.T @ (x @ w.T)
    return w, v


def outer(w: np.ndarray, steps: int, lr: float) -> float:
    w, v = by_hand(w, steps, lr)
    return float(-np.log(softmax(QUERY.numpy() @ w.T @ v.T)[range(9), TRUTH.numpy()]).mean())


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_adapted_weights_by_hand(steps: int) -> None:
    model = line()
    w, v = by_hand(model[0].weight.detach().numpy(), steps, 0.3)
    for second_order in (True, False):
        found = InnerLoop(model, steps=steps, lr=0.3).adapt(X, Y, 3, second_order=second_order)
        np.testing.assert_allclose(found["0.weight"].detach().numpy(), w, rtol=1e-10)
        np.testing.assert_allclose(found["1.weight"].detach().numpy(), v, rtol=1e-10, atol=1e-15)


def slope(model: nn.Sequential, steps: int, lr: float, *, second_order: bool) -> np.ndarray:
    adapting = InnerLoop(model, steps=steps, lr=lr)
    fast = adapting.adapt(X, Y, 3, second_order=second_order)
    of = model[0].weight if second_order else fast["0.weight"]  # first order: as if the steps were constants
    (found,) = torch.autograd.grad(cross_entropy(adapting.outputs(fast, QUERY), TRUTH), [of])
    return found.numpy()


def test_the_outer_gradient_is_of_second_order() -> None:
    """Against finite differences of a computation written in numpy; a first-order gradient is far off."""
    model, steps, lr, small = line(), 3, 0.5, 1e-5
    w = model[0].weight.detach().numpy()
    expected = np.zeros_like(w)
    for i in np.ndindex(w.shape):
        up, down = w.copy(), w.copy()
        up[i], down[i] = w[i] + small, w[i] - small
        expected[i] = (outer(up, steps, lr) - outer(down, steps, lr)) / (2 * small)
    found = slope(model, steps, lr, second_order=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    wrong = slope(model, steps, lr, second_order=False)
    assert np.abs(wrong - expected).max() > 0.1 * np.abs(expected).max()


def test_the_network_itself_is_left_alone() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    before = copy.deepcopy(model.state_dict())
    adapting = InnerLoop(model, steps=2, lr=0.1)
    adapting.unhooked.eval()
    adapting.adapt(X.float(), Y, 3, second_order=False)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    adapting.unhooked.train()
    adapting.adapt(X.float(), Y, 3, second_order=True)
    assert int(model[1].num_batches_tracked) == 2, "its running statistics take note in training mode"
