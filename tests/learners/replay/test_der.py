"""DER and DER++ against updates worked out in plain numbers, with the same draws from the same reservoir."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax

from driftline import registry
from driftline.errors import RequirementError
from driftline.learners.buffers import ReservoirBuffer
from driftline.learners.replay.der import DER
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.training.mac_counter import MacCounter

TASK = Classification(("a", "b", "c"))
ROUNDS = [(1.5, 1), (2.0, 0), (-0.5, 2)]  # one sample each, so that a batch has copies of it
START = np.array([[0.2], [-0.4], [0.1]])
LR, UPDATES, BATCH, CAPACITY, ALPHA, BETA = 0.3, 3, 4, 5, 0.7, 0.4


def linear() -> nn.Module:
    model = nn.Linear(1, 3, bias=False)
    model.weight.data = torch.tensor(START, dtype=torch.float32)
    return model


def slope(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of the mean cross-entropy."""
    found: np.ndarray = (softmax(x @ w.T, axis=1) - np.eye(3)[y]).T @ x / len(y)
    return found


def expected(alpha: float, beta: float) -> np.ndarray:
    w, buffer = START.copy(), ReservoirBuffer(CAPACITY, Seed(1).child("memory"))
    for number, label in ROUNDS:
        x, y = np.full((BATCH, 1), number), np.full(BATCH, label)
        for _ in range(UPDATES):
            outputs, grad = x @ w.T, slope(w, x, y)
            if len(buffer):
                old, stored = buffer.draw(BATCH)
                grad = grad + alpha * 2 * (old @ w.T - stored[:, 1:]).T @ old / stored[:, 1:].size
                if beta:
                    old, stored = buffer.draw(BATCH)
                    grad = grad + beta * slope(w, old, stored[:, 0].astype(int))
            w = w - LR * grad
            buffer.add(x, np.column_stack([y, outputs]))
    return w


def trained(make: Any, **settings: Any) -> Any:
    learner = make(lr=LR, updates=UPDATES, batch=BATCH, optimizer="sgd", capacity=CAPACITY, **settings)
    learner.seed = Seed(1)
    learner.prepare(linear(), TASK)
    for x, y in ROUNDS:
        learner.learn(np.array([[x]], np.float32), np.array([y]))
    return learner


def check(make: Any, beta: float) -> None:
    found = trained(make, alpha=ALPHA, beta=beta).model.weight.detach()
    np.testing.assert_allclose(found, expected(ALPHA, beta), rtol=1e-4)


@pytest.mark.parametrize("beta", [0.0, BETA])
def test_three_training_rounds_by_hand(beta: float) -> None:
    check(DER, beta)


class StoresAfterTheStep(DER):
    def update(self, x: Tensor, y: Tensor) -> None:
        offered, self.buffer.add = self.buffer.add, lambda *_: None  # type: ignore[method-assign]
        super().update(x, y)
        self.buffer.add = offered  # type: ignore[method-assign]
        rows, (inputs, labels) = y.numpy(), self._round
        self.buffer.add(inputs[rows], np.column_stack([labels[rows], self.model(x).detach()]))


class RecomputesOutputs(DER):
    def replayed(self) -> tuple[Tensor, Tensor, Tensor]:
        x, y, _ = super().replayed()
        return x, y, self.model(x).detach()


class SumsOverOutputs(DER):
    def replay_loss(self) -> Tensor:
        self.alpha *= 3
        loss = super().replay_loss()
        self.alpha /= 3
        return loss


class OneDraw(DER):
    def replay_loss(self) -> Tensor:
        draw = self.replayed()
        self.replayed = lambda: draw  # type: ignore[method-assign]
        loss = super().replay_loss()
        del self.replayed
        return loss


class Probabilities(DER):
    def replay_loss(self) -> Tensor:
        x, _, stored = self.replayed()
        return self.alpha * kl_div(log_softmax(self.model(x), 1), stored.softmax(1), reduction="batchmean")


class FirstRoundWithoutReplay(DER):
    def replay_loss(self) -> Tensor:
        return super().replay_loss() * (self.training_rounds > 0)


class StoresAfterTheRound(DER):
    def learn(self, x: Any, y: Any) -> None:
        offered, self.buffer.add = self.buffer.add, lambda *_: None  # type: ignore[method-assign]
        super().learn(x, y)
        self.buffer.add = offered  # type: ignore[method-assign]
        self.buffer.add(x, np.column_stack([y, self.model(torch.from_numpy(x)).detach()]))


@pytest.mark.parametrize(
    "wrong",
    [
        *(StoresAfterTheStep, RecomputesOutputs, SumsOverOutputs, OneDraw, Probabilities, FirstRoundWithoutReplay),
        StoresAfterTheRound,
    ],
)
def test_a_wrong_version_would_be_noticed(wrong: type[DER]) -> None:
    with pytest.raises(AssertionError):
        check(wrong, BETA)


class Constant(nn.Module):
    """Raw outputs that do not depend on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.z = nn.Parameter(torch.tensor([1.0, 0.0, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        return self.z.expand(len(x), -1)


def test_the_worked_example() -> None:
    learner = DER(alpha=1.0)
    learner.prepare(Constant(), TASK)
    learner.buffer.add(np.zeros((1, 1), np.float32), np.array([[0, 0.5, 0, 1]]))
    loss = learner.replay_loss()
    loss.backward()
    assert loss.item() == pytest.approx(0.4167, abs=5e-5)
    assert learner.model.z.grad.tolist() == pytest.approx([0.3333, 0, 0.6667], abs=5e-5)


def test_der_plus_plus_has_both_terms_and_costs_three_passes() -> None:
    der, plus = registry.get("method", "der")(), registry.get("method", "der++")()
    assert (der.alpha, der.beta, plus.alpha, plus.beta) == (0.3, 0.0, 0.2, 0.5)
    costs = []
    for make in (partial(DER, beta=0.0), partial(DER, beta=0.5)):
        learner, counter = make(updates=2, batch=BATCH), MacCounter()
        model = linear()
        counter.attach(model)
        learner.prepare(model, TASK)
        learner.learn(np.ones((1, 1), np.float32), np.array([1]))
        costs.append(counter.forward)
    one_pass = BATCH * 3
    assert costs == [3 * one_pass, 4 * one_pass]  # the first update replays nothing


def test_images_are_stored_as_bytes_while_training_sees_augmented_ones() -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(1, 256, (6, 8, 8, 1), dtype=np.uint8), np.arange(6) % 3
    learner = DER(updates=3, batch=4, augment="pad-crop-flip")
    learner.prepare(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), TASK)
    learner.learn(images, labels)
    assert learner.buffer.x.dtype == np.uint8
    assert len(learner.buffer.x) == 12
    original = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
    kept = zip(learner.buffer.x, learner.buffer.y, strict=True)
    assert all(original[image.tobytes()] == row[0] for image, row in kept)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(RequirementError, match="classification"):
        DER().prepare(linear(), Regression())
