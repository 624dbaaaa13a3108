"""A-GEM against projections and trainings worked out in plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.learners.supervised import a_gem
from driftline.learners.supervised.a_gem import AGEM, project_gradient
from driftline.learners.supervised.ft import FineTune
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.testing import digest
from driftline.testing.fixtures import small_network
from driftline.training.regularization import gradient, trainable_parameters

TRAINING = [([1.0, 0.5], 1.0), ([1.0, 1.0], -5.0)]  # one sample each: the second pulls against the first
LR, UPDATES = 0.1, 4


@pytest.mark.parametrize(
    ("slope", "recalled", "expected"),
    [
        ([1.0, 2.0], [3.0, 1.0], [1.0, 2.0]),  # they agree
        ([1.0, 0.0], [0.0, 5.0], [1.0, 0.0]),  # at right angles
        ([3.0, -1.0], [-2.0, 0.0], [0.0, -1.0]),
        ([1.0, -3.0], [1.0, 2.0], [2.0, -1.0]),  # product -5, length 5
        ([1.0, -3.0], [1e-25, 2e-25], [2.0, -1.0]),  # a squared length too small for single precision
        ([1.0, -3.0], [0.0, 0.0], [1.0, -3.0]),
    ],
)
def test_projection_numbers(slope: list[float], recalled: list[float], expected: list[float]) -> None:
    found = project_gradient(torch.tensor(slope), torch.tensor(recalled))
    torch.testing.assert_close(found, torch.tensor(expected))


class Squares:
    width = 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        return y

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs[:, 0] - y).square() / 2


def zeros() -> nn.Module:
    model = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(model.weight)
    return model


def expected() -> np.ndarray:
    w = np.zeros(2)
    (a, ya), (b, yb) = [(np.array(x), y) for x, y in TRAINING]
    for _ in range(UPDATES):
        w = w - LR * (w @ a - ya) * a
    bent = 0
    for _ in range(UPDATES):
        g, m = (w @ b - yb) * b, (w @ a - ya) * a
        if g @ m < 0:
            g, bent = g - g @ m / (m @ m) * m, bent + 1
        w = w - LR * g
    assert bent == UPDATES
    return w


def check_two_lessons(kind: type[AGEM]) -> None:
    learner = kind(lr=LR, updates=UPDATES, batch=3, optimizer="sgd", capacity=1)
    learner.prepare(zeros(), Squares())  # type: ignore[arg-type]
    for x, y in TRAINING:
        learner.learn(np.array([x], np.float32), np.array([y], np.float32))
    np.testing.assert_allclose(learner.model.weight.detach()[0], expected(), rtol=1e-5)


class NoProjection(AGEM):
    update = FineTune.update  # type: ignore[assignment]


class NoZeroGrad(AGEM):
    """Wild-Time's second release: gradients pile up over the steps."""

    def update(self, x: Tensor, y: Tensor) -> None:
        self._piled = getattr(self, "_piled", 0) + gradient(self.batch_loss(x, y), trainable_parameters(self.model))
        recalled = self._piled
        if len(self.buffer):
            old_x, old_y = self.buffer.draw(self.batch)
            recalled = gradient(
                self.batch_loss(torch.from_numpy(old_x), torch.from_numpy(old_y)), trainable_parameters(self.model)
            )
        a_gem.step_with_gradient(self.optim, trainable_parameters(self.model), project_gradient(self._piled, recalled))


class RemembersThePresent(AGEM):
    def learn(self, x: Any, y: Any) -> None:
        self.buffer.add(x, y)
        self.train(x, y)


class Mixed(AGEM):
    """Plain replay: the two gradients added."""

    def update(self, x: Tensor, y: Tensor) -> None:
        if len(self.buffer):
            old_x, old_y = self.buffer.draw(self.batch)
            x, y = torch.cat([x, torch.from_numpy(old_x)]), torch.cat([y, torch.from_numpy(old_y)])
        FineTune.update(self, x, y)  # type: ignore[arg-type]


def test_two_training_rounds_by_hand() -> None:
    check_two_lessons(AGEM)


@pytest.mark.parametrize("wrong", [NoProjection, NoZeroGrad, RemembersThePresent, Mixed])
def test_a_wrong_version_would_be_noticed(wrong: type[AGEM]) -> None:
    with pytest.raises(AssertionError):
        check_two_lessons(wrong)


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
    assert weights(trained(AGEM(updates=4), 1)) == weights(trained(FineTune(updates=4), 1))
    assert weights(trained(AGEM(updates=4), 2)) != weights(trained(FineTune(updates=4), 2))
    assert weights(trained(AGEM(updates=4, capacity=0), 2)) == weights(trained(FineTune(updates=4), 2))


def test_all_samples_are_offered_and_kept_as_bytes() -> None:
    learner = trained(AGEM(updates=1, capacity=30), 3)
    assert learner.buffer.n_seen == 60
    assert learner.buffer.x.dtype == np.uint8
    assert learner.buffer.x.shape == (30, 8, 8, 1)
    assert len(learner.buffer.y) == 30


def test_remembered_numbers_are_scaled_like_fresh_ones() -> None:
    """The same problem in other units is the same training."""
    ends = []
    for task, unit in ((Regression(), 1.0), (Regression(center=100.0, scale=20.0), 20.0)):
        learner = AGEM(lr=LR, updates=UPDATES, batch=3, optimizer="sgd")
        learner.prepare(zeros(), task)
        for x, y in TRAINING:
            learner.learn(np.array([x], np.float32), np.array([task.center + unit * y]))
        ends.append(learner.model.weight.detach())
    torch.testing.assert_close(*ends)
