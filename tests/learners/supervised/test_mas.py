"""MAS against its worked example and three trainings worked out in plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.learners.supervised import mas
from driftline.learners.supervised.ft import FineTune
from driftline.learners.supervised.mas import MAS
from driftline.training.regularization import trainable_parameters

ROUNDS = [([1.5, -1.0], 1.0), ([2.0, 1.0], -2.0), ([-0.5, 3.0], 0.5)]  # two inputs with one target
LR, UPDATES, STRENGTH = 0.02, 3, 0.05


class Line(nn.Module):
    """h(x) = a x + b."""

    def __init__(self, a: float, b: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([a, b]))

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = x * self.w[0] + self.w[1]
        return outputs


class Squares:
    """A task with a loss of (h - y)^2 / 2."""

    width = 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        return y

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs[:, 0] - y).square() / 2


def learned(make: Any, start: tuple[float, float], rounds: list[Any], **settings: Any) -> Any:
    learner = make(optimizer="sgd", **settings)
    learner.prepare(Line(*start), Squares())
    for x, y in rounds:
        learner.learn(np.array(x, np.float32)[:, None], np.full(len(x), y, np.float32))
    return learner


def test_the_worked_example() -> None:
    """The modulus of the mean gradient would be (8, 2), without the square (2, 1)."""
    learner = learned(MAS, (1.0, 1.0), [([2.0, -2.0], 0.0)], updates=0)
    assert learner.importance.tolist() == pytest.approx([8, 4])
    assert learner.anchor.tolist() == [1, 1]


def test_all_outputs_count_in_the_length() -> None:
    """h(x) = (t, 2 t) x: the squared length is 5 t^2 x^2."""
    network = nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(3.0)
    model = nn.Sequential(network, nn.Linear(1, 2, bias=False))
    model[1].weight.data = torch.tensor([[1.0], [2.0]])
    model[1].requires_grad_(False)
    learner = MAS(updates=0)
    learner.prepare(model, Squares())  # type: ignore[arg-type]
    learner.learn(np.array([[2.0]], np.float32), np.zeros(1, np.float32))
    assert learner.importance.tolist() == pytest.approx([10 * 3 * 4])


def expected() -> list[float]:
    """Weights, importances and anchors after the three trainings, each update on both of its inputs."""
    w, importance, anchor = np.array([0.2, -0.1]), np.zeros(2), np.zeros(2)
    for inputs, y in ROUNDS:
        rows = np.column_stack([inputs, np.ones(2)])
        for _ in range(UPDATES):
            w = w - LR * (((rows @ w - y)[:, None] * rows).mean(0) + 2 * STRENGTH * importance * (w - anchor))
        importance = importance + np.abs(2 * (rows @ w)[:, None] * rows).mean(0)
        anchor = w
    return [*w, *importance, *anchor]


def check(kind: type[MAS]) -> None:
    class Both(kind):  # type: ignore[misc,valid-type]
        """Every update is on both inputs of the round, not on a draw of them."""

        def learn(self, x: Any, y: Any) -> None:
            self.both = torch.from_numpy(x), torch.from_numpy(y)
            super().learn(x, y)

        def update(self, x: Tensor, y: Tensor) -> None:
            super().update(*self.both)

    learner = learned(Both, (0.2, -0.1), ROUNDS, lr=LR, updates=UPDATES, batch=2, penalty_weight=STRENGTH)
    found = [*learner.model.w.tolist(), *learner.importance.tolist(), *learner.anchor.tolist()]
    assert found == pytest.approx(expected(), rel=1e-4)


class StaleAnchor(MAS):
    def learn(self, x: Any, y: Any) -> None:
        before = self.anchor
        super().learn(x, y)
        self.anchor = before


class LatestOnly(MAS):
    def learn(self, x: Any, y: Any) -> None:
        before = self.importance
        super().learn(x, y)
        self.importance = self.importance - before


class HalfPenalty(MAS):
    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (super().loss(outputs, y) + FineTune.loss(self, outputs, y)) / 2  # type: ignore[arg-type]


class NoPenalty(MAS):
    loss = FineTune.loss  # type: ignore[assignment]


def test_three_training_rounds_by_hand() -> None:
    check(MAS)


@pytest.mark.parametrize("wrong", [StaleAnchor, LatestOnly, HalfPenalty, NoPenalty])
def test_a_wrong_version_would_be_noticed(wrong: type[MAS]) -> None:
    with pytest.raises(AssertionError):
        check(wrong)


def test_the_gradient_of_the_loss_or_of_the_length_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    length = lambda outputs, _: outputs.square().sum().sqrt()  # noqa: E731
    loss = lambda outputs, y: (outputs[:, 0] - y).square().sum() / 2  # noqa: E731
    for other in (length, loss):
        monkeypatch.setattr(mas, "squared_length", other)
        with pytest.raises(AssertionError):
            check(MAS)


def test_labels_play_no_part_in_the_importance() -> None:
    one, other = (learned(MAS, (0.2, -0.1), [([2.0, -2.0], y)], updates=0) for y in (0.0, 5.0))
    assert torch.equal(one.importance, other.importance)
    assert len(trainable_parameters(one.model)) == 1
