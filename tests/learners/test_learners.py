"""The methods against the same training written out by hand, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import GaussianNB

from driftline import models
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.frozen import Frozen
from driftline.learners.supervised.base import SupervisedLearner
from driftline.learners.supervised.erm import ERM, ERMAll
from driftline.learners.supervised.ft import FineTune
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing import digest
from driftline.testing.fixtures import small_network
from driftline.training.fit import fit
from driftline.types import Reveal

TASK = Classification(("a", "b", "c"))
RNG = np.random.default_rng(0)
PERIODS = [(RNG.integers(0, 256, (20 + k, 8, 8, 1), dtype=np.uint8), RNG.integers(0, 3, 20 + k)) for k in range(3)]
PROBE = RNG.integers(0, 256, (9, 8, 8, 1), dtype=np.uint8)


def network() -> torch.nn.Module:
    return small_network((8, 8, 1), 3, Seed(5))


def trained_learner(learner: Learner, periods: list[Any], model: Any = None) -> Learner:
    learner.seed = Seed(1)
    learner.prepare(network() if model is None else model, TASK)
    for x, y in periods:
        learner.learn(x, y)
    return learner


def weights(learner: Learner) -> str:
    return digest(dict(learner.model.state_dict()))


def step(model: Any, optimizer: Any, x: Any, y: Any) -> None:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def by_hand(training_rounds: list[tuple[Any, Any, Seed]], optimizer: Any = None) -> str:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3) if optimizer is None else optimizer(model)
    for x, y, seed in training_rounds:
        update = partial(step, model, optimizer)
        fit(model, x, y, update, updates=4, batch=32, seed=seed)
    return digest(dict(model.state_dict()))


@pytest.mark.parametrize("model", ["network", "linear", "random-forest"])
def test_erm_depends_on_the_latest_period_alone(model: str) -> None:
    def build() -> Any:
        return network() if model == "network" else models.build(model, (8, 8, 1), 3)

    long, short = ERM(updates=4), ERM(updates=4)
    answers = [
        trained_learner(long, PERIODS, build()).predict(PROBE),
        trained_learner(short, PERIODS[-1:], build()).predict(PROBE),
    ]
    assert digest(answers[0].scores) == digest(answers[1].scores)


def test_erm_is_training_from_the_initial_weights() -> None:
    x, y = PERIODS[2]
    assert weights(trained_learner(ERM(updates=4), PERIODS)) == by_hand([(x, y, Seed(1).child("lesson", 0))])
    assert weights(trained_learner(ERM(updates=4), PERIODS)) != weights(trained_learner(ERM(updates=4), PERIODS[:2]))


def test_erm_all_is_training_on_everything_so_far() -> None:
    x, y = (np.concatenate(parts) for parts in zip(*PERIODS, strict=True))
    everything = trained_learner(ERMAll(updates=4), PERIODS)
    assert weights(everything) == by_hand([(x, y, Seed(1).child("lesson", 0))])
    assert weights(everything) == weights(trained_learner(ERM(updates=4), [(x, y)]))


def training_rounds() -> list[tuple[Any, Any, Seed]]:
    return [(x, y, Seed(1).child("lesson", k)) for k, (x, y) in enumerate(PERIODS)]


def test_ft_carries_on_one_optimiser() -> None:
    learner = trained_learner(FineTune(updates=4), PERIODS)
    assert weights(learner) == by_hand(training_rounds())
    assert {int(state["step"]) for state in learner.optim.state.values()} == {12}


def test_ft_with_a_new_optimiser_each_period_would_be_noticed() -> None:
    @dataclass
    class Wrong(FineTune):
        def learn(self, x: Any, y: Any) -> None:
            self.new_optimizer()
            super().learn(x, y)

    assert weights(trained_learner(Wrong(updates=4), PERIODS)) != by_hand(training_rounds())


def test_settings_reach_the_optimiser() -> None:
    learner = trained_learner(FineTune(updates=4, lr=0.1, weight_decay=0.01, optimizer="sgd"), PERIODS)
    assert weights(learner) == by_hand(
        training_rounds(), lambda m: torch.optim.SGD(m.parameters(), lr=0.1, weight_decay=0.01)
    )


def test_a_method_that_continues_training_names_what_its_model_lacks() -> None:
    learner = SupervisedLearner()
    learner.prepare(models.build("logistic-regression", (3,), 2, Seed(0)), Classification(("a", "b")))
    with pytest.raises(UserError, match=r"SupervisedLearner continues training by self.train, .*train_from_scratch"):
        learner.train(np.zeros((4, 3)), np.array([0, 1, 0, 1]))


def test_ft_with_naive_bayes_is_partial_fit() -> None:
    learner = trained_learner(FineTune(), PERIODS, models.build("naive-bayes", (8, 8, 1), 3))
    plain = GaussianNB()
    for x, y in PERIODS:
        plain.partial_fit(x.reshape(len(x), -1) / np.float32(255), y, classes=[0, 1, 2])
    expected = plain.predict_proba(PROBE.reshape(9, -1) / np.float32(255))
    np.testing.assert_allclose(learner.predict(PROBE).scores, expected, rtol=1e-5)


def test_ft_refuses_what_cannot_go_on() -> None:
    with pytest.raises(UserError, match="FineTune continues training, and RandomForestClassifier"):
        trained_learner(FineTune(), [], models.build("random-forest", (8, 8, 1), 3))


def test_frozen_never_changes() -> None:
    assert Frozen.min_reveal is Reveal.INPUTS
    assert weights(trained_learner(Frozen(), PERIODS)) == digest(dict(network().state_dict()))


def test_answer_is_predict_then_adapt() -> None:
    calls = []

    class Spy(Learner):
        def predict(self, x: Any) -> Any:
            calls.append("predict")
            return "said"

        def adapt(self, x: Any) -> None:
            calls.append("adapt")

    assert Spy().answer(PROBE) == "said"
    assert calls == ["predict", "adapt"]
