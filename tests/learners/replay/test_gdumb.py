"""GDumb's sampler against its worked example, and its training against one in plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import nn

from driftline.learners.buffers import ReservoirBuffer
from driftline.learners.replay.gdumb import BalancedBuffer, GDumb
from driftline.seeds import Seed
from driftline.tasks import Classification

TASK = Classification(("a", "b", "c"))
START = np.array([[0.2], [-0.4], [0.1]])
ROUNDS = [(40.0, 1), (2.0, 0)]  # one sample each: the first has a gradient longer than 10
UPDATES = 64


def counts(buffer: Any) -> list[int]:
    found: list[int] = np.bincount(buffer.y, minlength=3).tolist()
    return found


def walk(buffer: Any, labels: str) -> list[list[int]]:
    found = []
    for k, letter in enumerate(labels):
        buffer.add(np.array([[k]]), np.array(["ABC".index(letter)]))
        found.append(counts(buffer))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_worked_example(seed: int) -> None:
    """Ties among the largest classes go to the first."""
    after = walk(BalancedBuffer(4, Seed(seed)), "AAAABBCCCA")
    assert after[:6] == [[1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0], [3, 1, 0], [2, 2, 0]]
    assert after[6:] == [[1, 2, 1], [1, 1, 2], [1, 1, 2], [2, 1, 1]]


def test_the_sample_that_leaves_is_random() -> None:
    left = set()
    for seed in range(30):
        buffer = BalancedBuffer(3, Seed(seed))
        walk(buffer, "AAAB")
        left |= {0, 1, 2} - set(buffer.x[:, 0].tolist())
    assert left == {0, 1, 2}


def test_a_class_with_its_share_takes_no_more() -> None:
    for labels in ("AAAAA", "AABBAB"):
        buffer = BalancedBuffer(4, Seed(0))
        walk(buffer, labels)
        assert buffer.x[:, 0].tolist() == [0, 1, 2, 3]


class RefusesNewClasses(BalancedBuffer):
    def add(self, x: Any, y: Any) -> None:
        if len(self) < 4 or y[0] in self.classes:
            super().add(x, y)


@pytest.mark.parametrize("wrong", [RefusesNewClasses, ReservoirBuffer])
def test_another_sampler_would_be_noticed(wrong: Any) -> None:
    assert walk(wrong(4, Seed(0)), "AAAABBCCCA")[6] != [1, 2, 1]


def test_one_delivery_is_as_good_as_many_and_inputs_stay_with_their_labels() -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(3, 200, p=[0.7, 0.2, 0.1])
    x = np.column_stack([np.arange(200), y])
    whole, parts = BalancedBuffer(30, Seed(1)), BalancedBuffer(30, Seed(1))
    whole.add(x, y)
    for rows in np.array_split(np.arange(200), 7):
        parts.add(x[rows], y[rows])
        assert len(parts) <= 30
    for buffer in (whole, parts):
        assert counts(buffer) == [10, 10, 10]
        assert (buffer.x[:, 1] == buffer.y).all()
        assert len(np.unique(buffer.x[:, 0])) == 30
    assert counts(BalancedBuffer(30, Seed(1))) == [0, 0, 0]


def fresh(x: float, y: int) -> np.ndarray:
    """The weights after a training from the start on copies of one sample."""
    w, speed = START.copy(), np.zeros((3, 1))
    for k in range(UPDATES):
        part = 256 * k / UPDATES
        start = 2 ** int(np.log2(part)) if part else 0
        lr = 0.0005 + 0.0495 * (1 + np.cos(np.pi * (part - start) / start)) / 2 if part else 0.005
        grad = (softmax(w[:, 0] * x) - np.eye(3)[y])[:, None] * x
        grad = grad * min(1, 10 / np.sqrt((grad**2).sum())) + 1e-6 * w
        speed = 0.9 * speed + grad
        w = w - lr * speed
    return w


def learned(kind: type[GDumb], **settings: Any) -> Any:
    learner = kind(updates=UPDATES, batch=4, capacity=1, **settings)
    model = nn.Linear(1, 3, bias=False)
    model.weight.data = torch.tensor(START, dtype=torch.float32)
    learner.prepare(model, TASK)
    return learner


def check(kind: type[GDumb]) -> None:
    learner = learned(kind)
    for x, y in ROUNDS:
        learner.learn(np.array([[x]], np.float32), np.array([y]))
        np.testing.assert_allclose(learner.model.weight.detach(), fresh(x, y), rtol=1e-3, atol=1e-4)


class WarmStart(GDumb):
    def train_from_scratch(self, x: Any, y: Any) -> None:
        self.train(x, y)


class NoClipping(GDumb):
    def prepare(self, *args: Any, **kwargs: Any) -> None:
        self.max_grad_norm = 1e9
        super().prepare(*args, **kwargs)


class ConstantRate(GDumb):
    def prepare(self, *args: Any, **kwargs: Any) -> None:
        self.min_lr = self.lr
        super().prepare(*args, **kwargs)


def test_two_trainings_by_hand() -> None:
    check(GDumb)


@pytest.mark.parametrize("wrong", [WarmStart, NoClipping, ConstantRate])
def test_a_wrong_version_would_be_noticed(wrong: type[GDumb]) -> None:
    with pytest.raises(AssertionError):
        check(wrong)


def test_it_trains_once_if_it_is_evaluated_at_the_end() -> None:
    learner = learned(GDumb)
    learner.evaluated_at_end = True
    for x, y in ROUNDS:
        learner.learn(np.array([[x]], np.float32), np.array([y]))
        np.testing.assert_allclose(learner.model.weight.detach(), START, rtol=1e-6)
    learner.finish()
    np.testing.assert_allclose(learner.model.weight.detach(), fresh(*ROUNDS[1]), rtol=1e-3, atol=1e-4)
