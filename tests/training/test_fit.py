from __future__ import annotations

import copy
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from driftline import models
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.testing import digest
from driftline.training import fit as fitting
from driftline.training.fit import Update, fit, optimizer_step, train_epochs
from driftline.training.torch_model import torch_model

TASK = Classification(("a", "b"))
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 6)).astype(np.float32), RNG.integers(0, 2, 30)


def network() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2)).eval()


def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> Update:
    return lambda x, y: optimizer_step(optimizer, TASK.loss(model(x), y).mean())


def train(model: nn.Module, **settings: int) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    options = {"updates": 5, "batch": 40, "seed": Seed(3), **settings}
    fit(model, X, Y, plain(model, optimizer), **options)
    return optimizer


@pytest.mark.parametrize("updates", [0, 1, 7])
def test_exactly_so_many_updates(updates: int) -> None:
    optimizer = train(network(), updates=updates)
    steps = [int(state["step"]) for state in optimizer.state.values()]
    assert steps == [updates] * len(steps)
    assert bool(steps) == (updates > 0)


def test_it_is_the_loop_one_would_write_by_hand() -> None:
    model, other = network(), network()
    train(model)
    optimizer = torch.optim.Adam(other.parameters(), lr=0.01)
    rows = torch.randint(30, (5, 40), generator=Seed(3).child("batches").torch())  # 40 of 30: with replacement
    other.train()
    with torch.random.fork_rng():
        torch.manual_seed(Seed(3).child("noise").value % 2**63)
        for chosen in rows:
            optimizer.zero_grad()
            nn.functional.cross_entropy(other(torch.from_numpy(X)[chosen]), torch.from_numpy(Y)[chosen]).backward()
            optimizer.step()
    assert digest(dict(model.state_dict())) == digest(dict(other.state_dict()))


def test_noise_is_seeded_and_global_random_numbers_are_left_alone() -> None:
    results = []
    for seed in (0, 1):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            before = torch.get_rng_state()
            model = network()
            train(model)
            assert torch.equal(torch.get_rng_state(), before)
            results.append(digest(dict(model.state_dict())))
    assert results[0] == results[1]
    other = network()
    train(other, seed=Seed(4))
    assert digest(dict(other.state_dict())) != results[0]


def test_a_failing_update_leaves_evaluation_mode() -> None:
    model = network()
    update = plain(model, torch.optim.SGD(model.parameters()))
    with pytest.raises(IndexError):
        fit(model, X, np.full(30, 5), update, updates=1, batch=4, seed=Seed(0))
    assert not any(module.training for module in model.modules())


def test_asking_changes_nothing_and_does_not_depend_on_the_batch() -> None:
    model = network()
    model[1].train()
    before = copy.deepcopy(model.state_dict())
    whole, parts = torch_model(model).predict(X), torch_model(model).predict(X, batch=7)
    np.testing.assert_allclose(whole, parts, atol=1e-6)
    assert digest(dict(before)) == digest(dict(model.state_dict()))
    assert [module.training for module in model] == [False, True, False, False]
    assert torch_model(model).predict(X[:0]).shape == (0, 2)


def test_inputs_are_standardised_by_the_first_training_round_alone() -> None:
    model = models.build("linear", (6,), 2)
    layer = model[0]
    assert torch_model(model).predict(X).shape == (30, 2)
    assert not layer.fitted
    train(model)
    np.testing.assert_allclose(layer.mean, X.mean(0), atol=1e-6)
    np.testing.assert_allclose(layer.scale, X.std(0), rtol=1e-5)
    update = plain(model, torch.optim.SGD(model.parameters()))
    fit(model, X + 5, Y, update, updates=1, batch=4, seed=Seed(0))
    np.testing.assert_allclose(layer.mean, X.mean(0), atol=1e-6)


@pytest.mark.parametrize("at_once", [0, 1 << 24])
@pytest.mark.parametrize("channels", [1, 3])
def test_batches_are_the_same_whenever_images_become_floats(
    monkeypatch: pytest.MonkeyPatch, at_once: int, channels: int
) -> None:
    monkeypatch.setattr(fitting, "PRECONVERT_MAX_VALUES", at_once)
    images = RNG.integers(0, 256, (30, 5, 4, channels), dtype=np.uint8)
    seen: list[torch.Tensor] = []
    fit(network(), images, Y, lambda x, y: seen.append(x), updates=3, batch=20, seed=Seed(3))
    rows = torch.randint(30, (3, 20), generator=Seed(3).child("batches").torch())
    assert len(seen) == 3
    for x, chosen in zip(seen, rows, strict=True):
        by_hand = torch.from_numpy(images)[chosen].permute(0, 3, 1, 2).float() / 255
        assert torch.equal(x, by_hand)
        assert x.stride() == by_hand.stride()  # convolutions choose their kernels by the layout


def batches(n: int, **how: Any) -> list[list[int]]:
    """The rows of each update over n samples."""
    seen: list[list[int]] = []
    x, settings = (
        np.arange(n, dtype=np.float32)[:, None],
        {"epochs": 2, "batch": 4, "seed": Seed(0), "max_updates": 0, **how},
    )
    task = Classification(tuple(map(str, range(n))))
    train_epochs(nn.Linear(1, 1), task, x, np.arange(n), lambda x, y: seen.append(y.tolist()), **settings)
    return seen


def test_an_epoch_takes_every_sample_once_and_keeps_the_smaller_batch() -> None:
    seen = batches(10)
    assert [len(rows) for rows in seen] == [4, 4, 2, 4, 4, 2]
    one, two = [*chain(*seen[:3])], [*chain(*seen[3:])]
    assert sorted(one) == sorted(two) == list(range(10))
    assert one != two
    assert seen == batches(10)
    assert seen != batches(10, seed=Seed(1))
    assert [len(rows) for rows in batches(9)] == [4, 5, 4, 5]  # one alone has no batch statistics
    assert batches(10, max_updates=4) == seen[:4]


class SeveralAnswers(Regression):
    def sample_answers(self, y: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return random.choice([-1.0, 1.0], len(y)).astype(np.float32)


def test_each_epoch_takes_another_accepted_answer() -> None:
    trained_learner: list[float] = []
    x, y = np.zeros((1, 1), np.float32), np.zeros(1)
    how: dict[str, Any] = {"epochs": 20, "batch": 4, "seed": Seed(0), "max_updates": 0}
    train_epochs(nn.Linear(1, 1), SeveralAnswers(), x, y, lambda x, y: trained_learner.append(y[0].item()), **how)
    assert set(trained_learner) == {-1.0, 1.0}
