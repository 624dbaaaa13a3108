"""SI on quadratics, where the path integral and the loss drop have closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.learners.supervised.base import SupervisedLearner
from driftline.learners.supervised.ft import FineTune
from driftline.learners.supervised.si import SI
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing import digest
from driftline.testing.fixtures import small_network
from driftline.training.regularization import gradient, step_with_gradient, trainable_parameters

CURVES = np.array([2.0, 0.5])  # loss = 1/2 sum_i curve_i (w_i - goal_i)^2
GOALS = [np.array([1.0, -3.0]), np.array([-2.0, 1.0]), np.array([0.5, 0.5])]
LR, UPDATES, STRENGTH, DAMPING = 0.1, 5, 0.3, 0.05


class Weights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.w


class Quadratic:
    """A task whose loss is exactly that; inputs are the roots of the curvatures."""

    width = 2

    def targets(self, y: np.ndarray) -> np.ndarray:
        return y

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs - y).square().sum(dim=1) / 2


def trained(learner: SupervisedLearner, goals: list[np.ndarray]) -> Any:
    learner.prepare(Weights(), Quadratic())  # type: ignore[arg-type]
    roots = np.sqrt(CURVES)
    for goal in goals:
        learner.learn(roots[None].astype(np.float32), (roots * goal)[None].astype(np.float32))
    return learner


def expected() -> list[float]:
    """The weights and their omegas after the three trainings."""
    w, omega, anchor = np.zeros(2), np.zeros(2), np.zeros(2)
    for goal in GOALS:
        path = np.zeros(2)
        for _ in range(UPDATES):
            slope = CURVES * (w - goal)
            step = -LR * (slope + 2 * STRENGTH * omega * (w - anchor))
            path -= slope * step
            w = w + step
        omega = np.maximum(0, omega + path / ((w - anchor) ** 2 + DAMPING))
        anchor = w
    return [*w, *omega]


def check_three_lessons(kind: type[SI]) -> None:
    settings: Any = {"lr": LR, "updates": UPDATES, "batch": 3, "optimizer": "sgd"}
    learner = trained(kind(**settings, penalty_weight=STRENGTH, damping=DAMPING), GOALS)
    found = [*learner.model.w.tolist(), *learner.omega.tolist()]
    assert found == pytest.approx(expected(), rel=1e-4)
    assert learner.path_integral.tolist() == [0, 0]


class EndPoints(SI):
    """Wild-Time's: the last gradient times the whole way, once per training."""

    def update(self, x: Tensor, y: Tensor) -> None:
        self.path_integral.zero_()
        slope = gradient(self.batch_loss(x, y), trainable_parameters(self.model))
        super().update(x, y)
        self.path_integral = -slope * (self._theta() - self.anchor)


class PenaltyInTheGradient(SI):
    def update(self, x: Tensor, y: Tensor) -> None:
        weights, before = trainable_parameters(self.model), self._theta()
        slope = gradient(self.batch_loss(x, y), weights) + 2 * self.penalty_weight * self.omega * (before - self.anchor)
        step_with_gradient(self.optim, weights, slope)
        self.path_integral -= slope * (self._theta() - before)


class NeverReset(SI):
    def learn(self, x: Any, y: Any) -> None:
        self.total = self.path_integral = getattr(self, "total", self.path_integral)
        super().learn(x, y)


class StaleAnchor(SI):
    def learn(self, x: Any, y: Any) -> None:
        start = self.anchor
        super().learn(x, y)
        self.anchor = start


class HalfPenalty(SI):
    def update(self, x: Tensor, y: Tensor) -> None:
        self.penalty_weight /= 2
        super().update(x, y)
        self.penalty_weight *= 2


def test_three_training_rounds_by_hand() -> None:
    check_three_lessons(SI)


@pytest.mark.parametrize("wrong", [EndPoints, PenaltyInTheGradient, NeverReset, StaleAnchor, HalfPenalty])
def test_a_wrong_version_would_be_noticed(wrong: type[SI]) -> None:
    with pytest.raises(AssertionError):
        check_three_lessons(wrong)


@pytest.mark.parametrize("kind", [SI, EndPoints])
def test_the_path_integral_is_the_loss_drop(kind: type[SI]) -> None:
    """For each weight on its own, up to the size of a step; 500 small steps on a quadratic."""
    learner = trained(kind(lr=2e-3, updates=500, batch=1, optimizer="sgd", damping=DAMPING), GOALS[:1])
    end = learner.model.w.detach().numpy().astype(float)
    share = learner.omega.numpy() * (end**2 + DAMPING)
    drop = CURVES * (GOALS[0] ** 2 - (end - GOALS[0]) ** 2) / 2
    far = abs(share / drop - 1).max()
    assert far < 0.005 if kind is SI else far > 0.1


def test_closed_form_of_the_path() -> None:
    """Gradient descent on a quadratic shrinks the distance by r each step, so the path is a geometric sum."""
    learner = trained(SI(lr=LR, updates=UPDATES, batch=2, optimizer="sgd", damping=DAMPING), GOALS[:1])
    r = 1 - LR * CURVES
    path = LR * (CURVES * GOALS[0]) ** 2 * (1 - r ** (2 * UPDATES)) / (1 - r**2)
    way = GOALS[0] * (1 - r**UPDATES)
    np.testing.assert_allclose(learner.omega, path / (way**2 + DAMPING), rtol=1e-5)


def test_omega_is_cut_off_at_zero_as_a_sum() -> None:
    learner = trained(SI(updates=0, damping=1e-3), [])
    learner.omega, learner.path_integral = torch.tensor([5.0, 5.0]), torch.tensor([-0.002, -0.02])
    learner.learn(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32))
    assert learner.omega.tolist() == pytest.approx([3.0, 0.0])


def test_without_strength_it_is_fine_tuning() -> None:
    rng = np.random.default_rng(0)
    periods = [(rng.integers(0, 256, (20, 8, 8, 1), dtype=np.uint8), rng.integers(0, 3, 20)) for _ in range(2)]
    ends = []
    for learner in (SI(updates=4, penalty_weight=0.0), FineTune(updates=4), SI(updates=4, penalty_weight=1.0)):
        learner.prepare(small_network((8, 8, 1), 3, Seed(5)), Classification(("a", "b", "c")))
        for x, y in periods:
            learner.learn(x, y)
        ends.append(digest(dict(learner.model.state_dict())))
    assert ends[0] == ends[1] != ends[2]


def test_no_damping_is_refused() -> None:
    with pytest.raises(UserError, match="damping=0"):
        trained(SI(damping=0.0), [])
