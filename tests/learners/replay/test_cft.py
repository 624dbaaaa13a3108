"""Refining against training rounds worked out in numbers, its replay schedule, and versions that are wrong."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline import registry
from driftline.errors import UserError
from driftline.learners.replay import base
from driftline.learners.replay.cft import CFT
from driftline.learners.replay.mir import MIR
from driftline.learners.replay.offline import Offline
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing import check_learner
from driftline.testing.fixtures import TASK, samples, small_network
from driftline.training.regularization import flatten, trainable_parameters
from driftline.types import Samples

from ..unit import TWO, Unit, column, prepared, slopes, weights

PRESETS = ["cft", "er", "er+ewc", "er+l2", "maxloss", "maxloss+ewc", "maxloss+l2", "mir", "mir+ewc", "mir+l2"]
PRESETS += ["offline", "online-ewc", "online-l2"]
LESSONS = [([1.5, -0.5], [1, 0]), ([2.0, 1.0], [0, 0]), ([-0.5, 0.2], [0, 1])]
LR, EPOCHS, STRENGTH, DECAY = 0.3, 3, 4.0, 0.7


def expected(penalty: str) -> float:
    """The weight after the three training rounds, of two samples each, which are one batch."""
    w, importance, anchor = 0.2, 0.0, 0.2
    for xs, ys in LESSONS:
        x, y = np.array(xs), np.array(ys)
        anchor = w
        for _ in range(EPOCHS):
            held = {"none": 0.0, "l2": 2 * STRENGTH * (w - anchor), "ewc": STRENGTH * importance * (w - anchor)}
            w -= LR * (slopes(w, x, y).mean() + held[penalty])
        importance = (slopes(w, x, y) ** 2).mean() + DECAY * importance
    return float(w)


def check_three_lessons(kind: Any, penalty: Any) -> None:
    settings = {"lr": LR, "epochs": EPOCHS, "optimizer": "sgd", "penalty_weight": STRENGTH, "fisher_decay": DECAY}
    learner = prepared(kind(penalty=penalty, **settings), Unit(0.2))
    for x, y in LESSONS:
        learner.learn(column(x), np.array(y))
    assert learner.model.w.item() == pytest.approx(expected(penalty), rel=1e-5)


class Halved(CFT):
    def penalty_term(self, anchor: Tensor) -> Tensor:
        return super().penalty_term(anchor) / 2


class AnchoredAtTheStart(CFT):
    def flat_weights(self) -> Tensor:
        self._first = getattr(self, "_first", super().flat_weights())
        return self._first


class DecayTwice(CFT):
    def penalty_term(self, anchor: Tensor) -> Tensor:
        return self.fisher_decay * super().penalty_term(anchor)


class PenaltyFromTheStart(CFT):
    """The upstream weights count as if every one were important."""

    def prepare(self, *args: Any) -> None:
        super().prepare(*args)
        self.anchor, self.importance = self.flat_weights(), torch.ones(1)


@pytest.mark.parametrize("penalty", ["none", "l2", "ewc"])
def test_three_training_rounds_by_hand(penalty: str) -> None:
    check_three_lessons(CFT, penalty)


@pytest.mark.parametrize(
    ("wrong", "penalty"),
    [
        (Halved, "l2"),
        (AnchoredAtTheStart, "l2"),
        (Halved, "ewc"),
        (AnchoredAtTheStart, "ewc"),
        (DecayTwice, "ewc"),
        (PenaltyFromTheStart, "ewc"),
    ],
)
def test_a_wrong_penalty_would_be_noticed(wrong: Any, penalty: str) -> None:
    with pytest.raises(AssertionError):
        check_three_lessons(wrong, penalty)


def test_the_worked_l2_penalty() -> None:
    learner = prepared(CFT(penalty="l2", penalty_weight=10.0), Unit(0.1, -0.2))
    assert learner.penalty_term(torch.zeros(2)).item() == pytest.approx(0.5)


@pytest.mark.parametrize(("fisher_decay", "running", "half"), [(0.9, [1.4, 1.8], 0.043), (1.0, [1.5, 2.0], 0.0475)])
def test_the_worked_fisher(
    fisher_decay: float, running: list[float], half: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.0])])
    monkeypatch.setattr(base, "fisher", lambda *args, **how: next(found))
    learner = prepared(CFT(penalty="ewc", penalty_weight=5.0, fisher_decay=fisher_decay), Unit(0.0, 0.0))
    for _ in range(2):
        learner.learn(np.ones((2, 2), np.float32), np.array([0, 1]))
    assert learner.importance.tolist() == pytest.approx(running)
    away = learner.anchor - torch.tensor([0.1, 0.2])
    assert learner.penalty_term(away).item() == pytest.approx(5 * half, rel=1e-5)
    assert learner.penalty_term(learner.anchor).item() == 0  # the anchor is where the last training round ended


def trained_learner(learner: Any, training_rounds: int, upstream: Samples | None = None) -> Any:
    prepared(learner, small_network((8, 8, 1), 3, Seed(5)), upstream, TASK)
    for k in range(training_rounds):
        learner.learn(samples(k).x, samples(k).y)
    return learner


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in ("cft", "offline", "online-l2")])
def test_the_first_training_round_is_fine_tuning_and_the_second_is_not(name: str) -> None:
    make = partial(registry.get("method", name), epochs=1, **({"penalty_weight": 0.0} if "l2" in name else {}))
    one, two = (trained_learner(CFT(epochs=1), n, samples(9)) for n in (1, 2))
    assert weights(trained_learner(make(), 1, samples(9))) == weights(one)
    assert weights(trained_learner(make(), 2, samples(9))) != weights(two)
    if name == "online-ewc":
        assert weights(trained_learner(make(penalty_weight=0.0), 2)) == weights(two)


def test_one_optimiser_serves_the_stream() -> None:
    learner = trained_learner(CFT(epochs=2), 3)
    steps = {float(entry["step"]) for entry in learner.optim.state.values()}
    assert steps == {3 * 2 * 3.0}  # 18 samples are three batches: 8, 8 and 2


def test_gradients_are_cut_to_length() -> None:
    for clip, most in ((0.01, 0.01), (None, math.inf)):
        learner = prepared(CFT(max_grad_norm=clip, epochs=1, lr=1.0, optimizer="sgd"), Unit(0.0, 0.0))
        learner.learn(np.full((2, 2), 5, np.float32), np.ones(2, int))
        moved = flatten(trainable_parameters(learner.model)).norm().item()
        assert moved == pytest.approx(min(most, 2.5 * math.sqrt(2)), rel=1e-3)
    learner = prepared(CFT(max_grad_norm=0.01, epochs=1), Unit(0.0))
    learner.learn(np.zeros((2, 1), np.float32), np.ones(2, int))  # no gradient at all
    assert learner.model.w.item() == 0


def test_numbers_are_refined_too() -> None:
    line = nn.Linear(1, 1)
    for weight in line.parameters():
        nn.init.zeros_(weight)
    learner = prepared(MIR(penalty="ewc", penalty_weight=0.01, lr=0.1), line, task=Regression())
    for _ in range(6):
        learner.learn(column([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    assert learner.predict(column([2.0])).prediction.item() == pytest.approx(4.0, abs=0.5)


def test_offline_waits_for_the_end() -> None:
    learner = prepared(Offline(epochs=2), small_network((8, 8, 1), 3, Seed(5)), samples(9), TASK)
    before = weights(learner)
    for k in (0, 1, 0):  # the last training round repeats the first
        learner.learn(samples(k).x, samples(k).y)
    assert weights(learner) == before
    taught_on: list[Any] = []
    learner.train_epochs, refine = (lambda x, y, seed: taught_on.append((x, y))), learner.train_epochs
    learner.finish()
    ((x, y),) = taught_on
    assert len(x) == len(y) == 36 + 18  # as many again, but upstream has no more than 18
    assert np.array_equal(x[:36], np.concatenate([samples(0).x, samples(1).x]))
    refine(x, y, Seed(0))
    assert weights(learner) != before
    prepared(Offline(), Unit(0.1)).finish()  # no error, nothing to do


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_registered_and_refuses_estimators(name: str) -> None:
    from driftline.models.sklearn_models import naive_bayes

    with pytest.raises(UserError, match="needs a network"):
        registry.get("method", name)().prepare(naive_bayes((2,), 2, Seed(0)), TWO)


@pytest.mark.parametrize(
    "how", [{"replay_mode": "two-stage", "replay_every": 2, "max_grad_norm": 0.5}, {"n_neighbors": 2}]
)
def test_what_no_preset_tries_keeps_the_contract(how: dict[str, Any]) -> None:
    check_learner(partial(MIR, penalty="ewc", updates=2, **how), models=[small_network])


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"ranking": "mri"}, "ranking=mri: should be 'mir', 'maxloss'"),
        ({"penalty": "l3"}, "penalty=l3: should be 'none', 'l2' or 'ewc'"),
        ({"replay_every": 0}, "replay_every=0: should be greater than or equal to 1"),
        ({"epochs": 0}, "epochs=0: should be greater than or equal to 1"),
        ({"upstream_fraction": 1.5}, "upstream_fraction=1.5: should be less than or equal to 1"),
        ({"penalty_weight": -1.0}, "penalty_weight=-1.0: should be greater than or equal to 0"),
        ({"max_grad_norm": 0.0}, "max_grad_norm=0.0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        MIR(**how).prepare(Unit(0.1), TWO)
