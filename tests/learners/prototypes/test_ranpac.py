"""RanPAC against its worked example and scikit-learn's ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from driftline.learners.prototypes.ranpac import RIDGES, RanPAC, best_ridge
from driftline.training.mac_counter import MacCounter

from ..one_by_one import labels, prepared, stream, walk

W = np.array([[1.0, -1, 0], [0, 1, 1]])
X, Y = np.array([[1, 2], [2, 1], [-1, 1]], np.float32), np.array([0, 1, 0])
SCORES = [[0.6118, -0.0824]]


def check(kind: type[RanPAC]) -> None:
    """The three samples in two deliveries."""
    learner = prepared(kind(projections=3, ridge=1.0), 2, width=2)
    learner._projection = W
    learner.learn(X[:2], Y[:2])
    learner.learn(X[2:], Y[2:])
    np.testing.assert_allclose(learner.gram, [[5, 1, 4], [1, 5, 4], [4, 4, 6]])
    np.testing.assert_allclose(learner.sums.T, [[1, 2], [3, 0], [3, 1]])
    expected = [[-0.0824, 0.3765], [0.3176, -0.0235], [0.2941, -0.0588]]
    np.testing.assert_allclose(learner.class_vectors(slice(None)).T, expected, atol=5e-5)
    scores = learner._class_vectors.outputs(learner.query_features(np.array([[0, 1]], np.float32)))
    np.testing.assert_allclose(scores, SCORES, atol=5e-5)


class NoRelu(RanPAC):
    def hidden(self, features: np.ndarray) -> np.ndarray:
        found: np.ndarray = features @ self._projection
        return found


class ClassMeans(RanPAC):
    def class_vectors(self, which: slice) -> np.ndarray:
        return super().class_vectors(which) / np.maximum(self.counts[which], 1)[:, None]


class RidgeEachTime(RanPAC):
    def learn(self, x: Any, y: Any) -> None:
        self.gram += np.eye(self.projections)
        super().learn(x, y)


class DrawsAgain(RanPAC):
    def learn(self, x: Any, y: Any) -> None:
        super().learn(x, y)
        self._projection = self.seed.child(int(self.counts.sum())).numpy().standard_normal(self._projection.shape)


def test_the_worked_example() -> None:
    check(RanPAC)


@pytest.mark.parametrize("wrong", [NoRelu, ClassMeans, RidgeEachTime, DrawsAgain])
def test_a_wrong_version_would_be_noticed(wrong: type[RanPAC]) -> None:
    with pytest.raises(AssertionError):
        check(wrong)


def test_the_ridge_is_the_best_on_the_last_fifth() -> None:
    rng = np.random.default_rng(0)
    hidden, y = np.maximum(rng.normal(size=(50, 60)), 0), np.eye(3)[rng.integers(0, 3, 50)]
    errors = []
    for ridge in RIDGES:
        fit = Ridge(alpha=ridge, fit_intercept=False).fit(hidden[:40], y[:40])
        errors.append(np.square(fit.predict(hidden[40:]) - y[40:]).sum())
    best = RIDGES[np.argmin(errors)]
    assert 1e-8 < best < 1e8
    assert best_ridge(hidden, y) == best


def test_the_ridge_follows_the_scale_of_the_features() -> None:
    """By normal equations; features ten times as large need a ridge a hundred times as large."""
    chosen = []
    for scale in (0.1, 1.0, 10.0, 100.0):
        rng = np.random.default_rng(3)
        hidden, y = scale * np.maximum(rng.normal(size=(60, 20)), 0), np.eye(3)[rng.integers(0, 3, 60)]
        fitted, rest = slice(0, 48), slice(48, 60)
        gram, targets = hidden[fitted].T @ hidden[fitted], hidden[fitted].T @ y[fitted]
        solved = [np.linalg.solve(gram + ridge * np.eye(20), targets) for ridge in RIDGES]
        errors = [np.square(hidden[rest] @ weights - y[rest]).mean() for weights in solved]
        chosen.append(best_ridge(hidden, y))
        assert chosen[-1] == RIDGES[np.argmin(errors)]
    np.testing.assert_allclose(np.diff(np.log10(chosen)), 2)


def test_the_order_and_the_division_of_samples_do_not_matter_but_for_the_ridge() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(40, 6)).astype(np.float32), rng.integers(0, 4, 40)
    found = []
    for rows in ([np.arange(40)], np.array_split(rng.permutation(40), 7)):
        learner = prepared(RanPAC(projections=30, ridge=10.0), 4)
        for part in rows:
            learner.learn(x[part], y[part])
        found.append(learner.predict(x).scores)
    np.testing.assert_allclose(*found, atol=1e-5)
    chosen = prepared(RanPAC(projections=30), 4)
    chosen.learn(x, y)
    assert chosen.present_ridge == best_ridge(chosen.hidden(x), np.eye(4)[y])
    chosen.learn(x[:1], y[:1])  # too few for a choice
    assert chosen.present_ridge == best_ridge(chosen.hidden(x), np.eye(4)[y])
    same = np.repeat(x[:1], 2, axis=0)  # what is fitted fits the other one exactly: the smallest ridge is the best
    chosen.learn(same, np.repeat(y[:1], 2))
    assert chosen.present_ridge == 1e-8


def test_the_smallest_ridge_works_with_fewer_samples_than_projections() -> None:
    rng = np.random.default_rng(2)
    x, y = 100 * rng.normal(size=(8, 6)).astype(np.float32), np.arange(8) % 4
    learner = prepared(RanPAC(projections=50, ridge=1e-8), 4)
    learner.learn(x, y)
    assert learner.predict(x).prediction.tolist() == y.tolist()


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_new_samples_get_the_scores_of_exact_arithmetic_also_with_the_smallest_ridge(scale: float) -> None:
    """G has fewer samples than rows, and 1e-8 is less than the rounding of its numbers."""
    rng = np.random.default_rng(3)
    x, y = scale * rng.normal(size=(60, 12)).astype(np.float32), rng.integers(0, 4, 60)
    learner = prepared(RanPAC(projections=80, ridge=1e-8), 4, width=12)
    learner.learn(x[:40], y[:40])
    u, s, vt = np.linalg.svd(learner.hidden(x[:40]), full_matrices=False)
    expected = learner.hidden(x[40:]) @ vt.T @ ((s / (s**2 + 1e-8))[:, None] * (u.T @ np.eye(4)[y[:40]]))
    scores = learner._class_vectors.outputs(learner.query_features(x[40:]))
    np.testing.assert_allclose(scores, expected, atol=2e-3)


def test_one_by_one_in_blocks_is_one_after_another() -> None:
    steps = stream(40, 4, 13)
    fast, plain = (
        walk(prepared(RanPAC(projections=20, ridge=1.0), 4), steps, labels(4), plainly=plainly)
        for plainly in (False, True)
    )
    np.testing.assert_array_equal(fast.prediction, plain.prediction)
    np.testing.assert_allclose(fast.scores, plain.scores, atol=1e-5)


def test_the_work_besides_the_network_is_counted() -> None:
    learner, counter = prepared(RanPAC(projections=4), 2, width=3), MacCounter()
    counter.attach(learner.model)
    learner.solve(n_labels=5)
    assert counter.forward == 5 * (12 + 16) + 64 // 3 + 2 * 16
    learner.query_features(np.zeros((2, 3), np.float32))
    assert counter.forward == 5 * (12 + 16) + 64 // 3 + 2 * 16 + 2 * 12
    before, x = counter.forward, np.arange(30, dtype=np.float32).reshape(10, 3)
    learner.learn(x, np.arange(10) % 2)
    ridge = 3 * 8 * 4**2 + 10 * 4**3 + 4 * 8 * 2 + 2 * 4 * (4 + 17 * 2)  # eight samples are fitted, two are predicted
    network = 10 * 3 * 2
    assert counter.forward - before == 10 * (12 + 16) + 64 // 3 + 2 * 16 + ridge + network
