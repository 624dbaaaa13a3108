"""iCaRL: herding, targets, updates and answers by hand, with the same draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from driftline.errors import RequirementError
from driftline.learners.replay.icarl import ICaRL, herded
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.training.mac_counter import MacCounter
from driftline.types import Samples

TASK = Classification(("a", "b", "c", "d", "e"))
RNG = np.random.default_rng(0)
LABELS = ([0, 1, 0, 1, 1, 0], [2, 2, 2, 2], [0, 3, 3, 0, 3])  # two new classes; one; one that comes again and a new one
DELIVERIES = [(RNG.normal(size=(len(y), 2)).astype(np.float32), np.array(y)) for y in LABELS]
START = RNG.normal(size=(5, 2))
LR, UPDATES, BATCH, CAPACITY = 0.5, 4, 5, 6
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.28, -0.96]])

Targets = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From labels, outputs of the old network, classes seen before and classes of the delivery."""


def sigmoid(z: np.ndarray) -> np.ndarray:
    found: np.ndarray = 1 / (1 + np.exp(-z))
    return found


def unit(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = x / np.linalg.norm(x, axis=1, keepdims=True)
    return found


def best_first(x: np.ndarray, n: int) -> list[int]:
    """Herding by trying all continuations."""
    mean, rows = unit(x).mean(axis=0), list[int]()
    for _ in range(min(n, len(x))):
        others = [k for k in range(len(x)) if k not in rows]
        rows.append(min(others, key=lambda k: float(np.linalg.norm(mean - unit(x[[*rows, k]]).mean(axis=0)))))
    return rows


def targets(y: np.ndarray, old: np.ndarray, seen: np.ndarray, present: np.ndarray) -> np.ndarray:
    wanted = np.eye(5)[y]
    for c in set(seen) - set(present):
        wanted[:, c] = sigmoid(old[:, c])
    return wanted


def labels_of_exemplars(y: np.ndarray, old: np.ndarray, seen: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Wrong: an exemplar keeps its label."""
    wanted = targets(y, old, seen, present)
    wanted[np.arange(len(y)), y] = 1
    return wanted


def all_old(y: np.ndarray, old: np.ndarray, seen: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Wrong here: a class that comes again is not learned from its labels."""
    return targets(y, old, seen, np.setdiff1d(present, seen))


def by_hand(seen_rows: list[np.ndarray], target: Targets = targets) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """The weights and the exemplars at the end."""
    w, old, exemplars, batches = START.copy(), START.copy(), dict[int, np.ndarray](), iter(seen_rows)
    for x, y in DELIVERIES:
        present, before = np.unique(y), np.array(list(exemplars), int)
        pool_x = np.concatenate([x, *exemplars.values()])
        pool_y = np.concatenate([y, *(np.full(len(rows), c) for c, rows in exemplars.items())])
        for _ in range(UPDATES):
            rows = next(batches)
            given = pool_x[rows]
            wanted = target(pool_y[rows], given @ old.T, before, present)
            w = w - LR * (sigmoid(given @ w.T) - wanted).T @ given / wanted.size
        size = CAPACITY // len({*before, *present})
        exemplars = {c: rows if c in present else rows[:size] for c, rows in exemplars.items()}
        for c in present:
            candidates = np.concatenate([exemplars.get(c, x[:0]), x[y == c]])
            exemplars[c] = candidates[best_first(candidates, size)]
        old = w.copy()
    return w, exemplars


def learned(**settings: Any) -> tuple[ICaRL, list[np.ndarray]]:
    """A learner after three deliveries, and the rows of its mini-batches."""
    rows: list[np.ndarray] = []

    class Spy(ICaRL):
        def fit_round(self, x: Any, y: np.ndarray, updates: int, batch: int, seed: Seed) -> None:
            draws = seed.child("batches").torch()
            rows.extend(torch.randint(len(y), (updates, batch), generator=draws).numpy())
            super().fit_round(x, y, updates, batch, seed)

    learner = Spy(
        **{"lr": LR, "updates": UPDATES, "batch": BATCH, "optimizer": "sgd", "capacity": CAPACITY, **settings}
    )
    learner.seed = Seed(1)
    model = nn.Linear(2, 5, bias=False)
    model.weight.data = torch.tensor(START, dtype=torch.float32)
    learner.prepare(model, TASK)
    for x, y in DELIVERIES:
        learner.learn(x, y)
    return learner, rows


def test_the_worked_example_of_herding() -> None:
    assert herded(FEATURES, 4).tolist() == [0, 1, 3, 2] == best_first(FEATURES, 4)
    mean = FEATURES.mean(axis=0)
    assert mean.tolist() == pytest.approx([0.52, 0.16])
    assert np.square(FEATURES - mean).sum(axis=1).tolist() == pytest.approx([0.256, 0.976, 0.272, 1.312])
    nearest = np.square(FEATURES - mean).sum(axis=1).argsort()
    assert nearest.tolist() == [0, 2, 1, 3]  # "closest to the mean" would be another order
    assert herded(FEATURES, 2).tolist() == [0, 1]  # a prefix
    assert herded(FEATURES, 9).tolist() == [0, 1, 3, 2]


def test_three_deliveries_by_hand() -> None:
    learner, rows = learned()
    weights, exemplars = by_hand(rows)
    np.testing.assert_allclose(learner.model.weight.detach(), weights, rtol=1e-4, atol=1e-5)
    assert learner.exemplars.keys() == exemplars.keys()
    for label, kept in exemplars.items():
        np.testing.assert_array_equal(learner.exemplars[label], kept)
    assert [len(kept) for kept in exemplars.values()] == [1, 1, 1, 1]


@pytest.mark.parametrize("wrong", [labels_of_exemplars, all_old])
def test_wrong_targets_would_be_noticed(wrong: Targets) -> None:
    learner, rows = learned()
    assert np.abs(learner.model.weight.detach().numpy() - by_hand(rows, wrong)[0]).max() > 0.01


def test_the_answer_is_the_nearest_mean_among_the_classes_seen() -> None:
    learner, _ = learned(capacity=40)
    x = RNG.normal(size=(50, 2)).astype(np.float32)
    means = {label: unit(unit(rows).mean(axis=0)[None])[0] for label, rows in learner.exemplars.items()}
    answers = learner.predict(x)
    expected = [min(means, key=lambda c: float(np.linalg.norm(one - means[c]))) for one in unit(x)]
    assert answers.prediction.tolist() == expected
    assert (answers.scores[:, 4] == 0).all()  # never seen
    by_head = (x @ learner.model.weight.detach().numpy().T).argmax(axis=1)
    assert (by_head != answers.prediction).mean() > 0.2  # answering with the last layer would differ


def test_means_follow_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that does not come again has its mean computed by the new network."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 5))
    learner = ICaRL(lr=0.5, updates=20, optimizer="sgd")
    learner.seed = Seed(1)
    learner.prepare(model, TASK)
    learner.learn(*DELIVERIES[0])
    before = learner.means.copy()
    learner.learn(*DELIVERIES[1])
    assert np.abs(learner.means[:2] - before).max() > 1e-3
    features = learner.features(learner.exemplars[1])
    np.testing.assert_allclose(learner.means[1], unit(features.mean(axis=0)[None])[0], rtol=1e-5)


def test_upstream_samples_are_a_first_delivery_and_without_any_the_head_answers() -> None:
    model = nn.Linear(2, 5, bias=False)
    x, y = DELIVERIES[0]
    learner = ICaRL()
    learner.prepare(model, TASK)
    assert learner.predict(x).prediction.tolist() == model(torch.tensor(x)).argmax(dim=1).tolist()
    learner.prepare(model, TASK, Samples(x, y))
    assert sorted(learner.exemplars) == [0, 1]
    assert set(learner.predict(x).prediction.tolist()) <= {0, 1}


def test_a_pass_of_the_old_network_is_counted_with_each_update() -> None:
    meter, model = MacCounter(), nn.Linear(2, 5, bias=False)
    meter.attach(model)
    learner = ICaRL(updates=3, batch=4, capacity=2)
    learner.seed = Seed(1)
    learner.prepare(model, TASK)
    learner.learn(*DELIVERIES[0])
    assert meter.forward == (3 * 4 + 6 + 2) * 10  # updates, herding, means
    learner.learn(*DELIVERIES[1])
    assert meter.forward == (3 * 4 + 6 + 2 + 2 * 3 * 4 + 4 + 3) * 10


def test_other_tasks_are_refused() -> None:
    with pytest.raises(RequirementError, match="classification"):
        ICaRL().prepare(nn.Linear(2, 1), Regression())
