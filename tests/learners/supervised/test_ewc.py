"""EWC against three trainings worked out in plain numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.learners.supervised.ewc import EWC
from driftline.learners.supervised.ft import FineTune
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing import digest
from driftline.testing.fixtures import small_network
from driftline.training.regularization import flatten, trainable_parameters

TRAINING = [(1.5, 1), (2.0, 0), (-0.5, 0)]  # one sample each, so that every batch is the same
LR, UPDATES, STRENGTH, DECAY = 0.3, 3, 4.0, 0.7


class Unit(nn.Module):
    """A logistic unit: P(class 1) = sigmoid(w x)."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.2]))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([torch.zeros(len(x)), x @ self.w], dim=1)


def expected() -> tuple[float, float, float]:
    """The weight, its importance and its anchor after the three trainings."""
    w, importance, anchor = 0.2, 0.0, 0.0
    for x, y in TRAINING:
        for _ in range(UPDATES):
            slope = (1 / (1 + math.exp(-w * x)) - y) * x
            w -= LR * (slope + STRENGTH * importance * (w - anchor))
        importance = ((1 / (1 + math.exp(-w * x)) - y) * x) ** 2 + DECAY * importance
        anchor = w
    return w, importance, anchor


def check_three_lessons(kind: type[EWC]) -> None:
    learner = kind(lr=LR, updates=UPDATES, batch=4, optimizer="sgd", penalty_weight=STRENGTH, fisher_decay=DECAY)
    learner.prepare(Unit(), Classification(("a", "b")))
    for x, y in TRAINING:
        learner.learn(np.array([[x]], np.float32), np.array([y]))
    found = [learner.model.w.item(), learner.importance.item(), learner.anchor.item()]  # type: ignore[union-attr]
    assert found == pytest.approx(expected(), rel=1e-5)


class StaleAnchor(EWC):
    def learn(self, x: Any, y: Any) -> None:
        first = self.anchor
        super().learn(x, y)
        self.anchor = self.anchor if first is None else first


class NoHalf(EWC):
    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return 2 * super().loss(outputs, y) - FineTune.loss(self, outputs, y)  # type: ignore[arg-type]


class NoDecay(EWC):
    def learn(self, x: Any, y: Any) -> None:
        self.fisher_decay = 1.0
        super().learn(x, y)


class LatestFisherOnly(EWC):
    def learn(self, x: Any, y: Any) -> None:
        self.fisher_decay = 0.0
        super().learn(x, y)


class NoPenalty(EWC):
    loss = FineTune.loss  # type: ignore[assignment]


def test_three_training_rounds_by_hand() -> None:
    check_three_lessons(EWC)


@pytest.mark.parametrize("wrong", [StaleAnchor, NoHalf, NoDecay, LatestFisherOnly, NoPenalty])
def test_a_wrong_version_would_be_noticed(wrong: type[EWC]) -> None:
    with pytest.raises(AssertionError):
        check_three_lessons(wrong)


def trained(learner: Any, batches: int) -> Any:
    rng = np.random.default_rng(0)
    learner.seed = Seed(1)
    learner.prepare(small_network((8, 8, 1), 3, Seed(5)), Classification(("a", "b", "c")))
    for _ in range(batches):
        learner.learn(rng.integers(0, 256, (20, 8, 8, 1), dtype=np.uint8), rng.integers(0, 3, 20))
    return learner


def weights(learner: Any) -> str:
    return digest(dict(learner.model.state_dict()))


def test_the_first_training_round_is_fine_tuning_and_the_second_is_not() -> None:
    assert weights(trained(EWC(updates=4), 1)) == weights(trained(FineTune(updates=4), 1))
    assert weights(trained(EWC(updates=4), 2)) != weights(trained(FineTune(updates=4), 2))
    assert weights(trained(EWC(updates=4, penalty_weight=0.0), 2)) == weights(trained(FineTune(updates=4), 2))


def test_the_anchor_does_not_move_with_the_weights() -> None:
    learner = trained(EWC(updates=4), 1)
    before = learner.anchor.clone()
    learner.train(np.zeros((4, 8, 8, 1), np.uint8), np.zeros(4, int))
    assert torch.equal(learner.anchor, before)
    assert not torch.equal(flatten(trainable_parameters(learner.model)), before)


def test_the_kind_of_fisher_matters() -> None:
    kinds: list[dict[str, Any]] = [{}, {"fisher_labels": "sampled"}, {"fisher_labels": "predicted"}]
    kinds += [{"fisher_examples": 5}]
    assert len({digest(trained(EWC(updates=4, **kind), 2).importance) for kind in kinds}) == len(kinds)
