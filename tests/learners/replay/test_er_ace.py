"""ER-ACE against its worked example and updates worked out in plain numbers, with the same draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from driftline.learners.buffers import ReservoirBuffer
from driftline.learners.replay import er_ace
from driftline.learners.replay.er_ace import ERACE, own_class_loss
from driftline.seeds import Seed
from driftline.tasks import Classification

TASK = Classification(("a", "b", "c", "d"))
ROUNDS = [([1.5, -1.0], [1, 2]), ([2.0, 0.5], [0, 3]), ([-0.5, 1.0], [2, 2])]
START = np.array([[0.2], [-0.4], [0.1], [0.3]])
LR, UPDATES, BATCH, CAPACITY = 0.3, 3, 4, 5


def test_the_worked_example() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    twice = torch.cat([logits, torch.tensor([[-50.0, 50.0, 0.0]])])  # the second has label 1 and adds no loss
    loss = 2 * own_class_loss(twice, torch.tensor([2, 1]))
    loss.backward()
    assert loss.item() == pytest.approx(1.3133, abs=5e-5)
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([0, 0.7311, -0.7311], abs=5e-5)
    plain = cross_entropy(logits, torch.tensor([2]))
    assert plain.item() == pytest.approx(2.4076, abs=5e-5)


def test_classes_that_are_not_seen_yet_are_left_out_too() -> None:
    """The authors' rule keeps the class 3, and has a loss of 1.4076."""
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0], [-50.0, 50.0, 0.0, -50.0]])
    assert 2 * own_class_loss(logits, torch.tensor([2, 1])).item() == pytest.approx(1.3133, abs=5e-5)


def test_one_class_alone_has_no_loss_and_no_gradient() -> None:
    """The authors' rule has a loss of .1269 here."""
    logits = torch.tensor([[2.0, 1.0, 0.0]], requires_grad=True)
    loss = own_class_loss(logits, torch.tensor([0]))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert logits.grad.abs().max() == 0


def slope(w: np.ndarray, x: np.ndarray, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The gradient of the mean cross-entropy over these classes."""
    outputs = np.where(classes, x @ w.T, -np.inf)
    found: np.ndarray = (softmax(outputs, axis=1) - np.eye(4)[y]).T @ x / len(y)
    return found


def expected(seen: list[np.ndarray]) -> np.ndarray:
    """The weights after the training rounds, whose batches have these rows."""
    w, buffer, batches = START.copy(), ReservoirBuffer(CAPACITY, Seed(1).child("memory")), iter(seen)
    for numbers, label in ROUNDS:
        for _ in range(UPDATES):
            rows = next(batches)
            x, y = np.array(numbers)[rows, None], np.array(label)[rows]
            grad = slope(w, x, y, np.isin(np.arange(4), y))
            if len(buffer):
                grad = grad + slope(w, *buffer.draw(BATCH), np.ones(4, bool))
            w = w - LR * grad
            buffer.add(x, y)
    return w


def check(kind: type[ERACE]) -> None:
    seen: list[np.ndarray] = []

    class Spy(kind):  # type: ignore[misc,valid-type]
        def update(self, x: Tensor, y: Tensor) -> None:
            seen.append(y.numpy())
            super().update(x, y)

    learner = Spy(lr=LR, updates=UPDATES, batch=BATCH, optimizer="sgd", capacity=CAPACITY)
    learner.seed = Seed(1)
    model = nn.Linear(1, 4, bias=False)
    model.weight.data = torch.tensor(START, dtype=torch.float32)
    learner.prepare(model, TASK)
    for x, y in ROUNDS:
        learner.learn(np.array(x, np.float32)[:, None], np.array(y))
    np.testing.assert_allclose(model.weight.detach(), expected(seen), rtol=1e-4)


class MasksReplayToo(ERACE):
    def batch_loss(self, x: Tensor, y: Tensor) -> Tensor:
        return own_class_loss(self.model(x), y)


class Halved(ERACE):
    """The mean of the two losses."""

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        self.lr /= 2
        super().prepare(*args, **kwargs)


def test_three_training_rounds_by_hand() -> None:
    check(ERACE)


def test_a_wrong_version_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (MasksReplayToo, Halved):
        with pytest.raises(AssertionError):
            check(wrong)
    masked_with_zero = lambda logits, y: cross_entropy(  # noqa: E731
        torch.where(torch.isin(torch.arange(4), y), logits, 0.0), y
    )
    of_the_round = lambda logits, y: cross_entropy(logits, y)  # noqa: E731
    for loss in (masked_with_zero, of_the_round):
        monkeypatch.setattr(er_ace, "own_class_loss", loss)
        with pytest.raises(AssertionError):
            check(ERACE)
