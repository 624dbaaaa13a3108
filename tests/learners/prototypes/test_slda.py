"""Streaming LDA against its worked example, a plain computation from all samples, and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from driftline.learners.prototypes.slda import StreamingLDA
from driftline.training.mac_counter import MacCounter

from ..one_by_one import after_labels, labels, must_equal, prepared, stream, walk

X, Y = [[1, 0], [3, 0], [0, 2], [0, 4]], [0, 0, 1, 1]
EXACT = [[0, 0], [1, 0], [0.6667, 0], [0.5, 0.5]]
PUBLISHED = [[0, 0], [1, 0], [0.6667, 0.8889], [0.5, 1.4167]]
QUERY = np.array([[1.05, 1.55]], np.float32)


@pytest.mark.parametrize(("as_published", "diagonals"), [(False, EXACT), (True, PUBLISHED)])
def test_the_worked_example(as_published: bool, diagonals: list[list[float]]) -> None:
    learner = prepared(StreamingLDA(as_published=as_published), 2, width=2)
    for x, y, diagonal in zip(X, Y, diagonals, strict=True):
        after_labels(learner, [x], [y])
        np.testing.assert_allclose(learner.covariance, np.diag(diagonal), atol=5e-5)
    assert (learner.sums / learner.counts[:, None]).tolist() == [[2, 0], [0, 3]]
    expected = [0.2, 0.1059] if as_published else [0.2, 0.3]
    scores = learner._class_vectors.outputs(learner.query_features(QUERY))
    np.testing.assert_allclose(scores[0], expected, atol=1e-3)  # the shrinkage moves the fourth digit
    answers = learner.predict(QUERY)
    assert answers.prediction.tolist() == [0 if as_published else 1]
    np.testing.assert_allclose(answers.scores[0], softmax(scores[0]), rtol=1e-5)


def sample(n: int, width: int = 6, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % classes)
    mixing = rng.normal(size=(width, width))
    x = rng.normal(size=(classes, width))[y] + rng.normal(size=(n, width)) @ mixing
    return x.astype(np.float32), y


def within(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The covariance of the features, each class centred at its mean."""
    centred = np.concatenate([x[y == k] - x[y == k].mean(axis=0) for k in np.unique(y)]).astype(float)
    found: np.ndarray = centred.T @ centred / len(y)
    return found


def check(kind: Any) -> None:
    x, y = sample(60)
    learner = after_labels(prepared(kind(), 4), x.tolist(), y.tolist())
    np.testing.assert_allclose(learner.covariance, within(x, y), atol=1e-6)
    order = np.random.default_rng(1).permutation(60)
    again = after_labels(prepared(kind(), 4), x[order].tolist(), y[order].tolist())
    np.testing.assert_allclose(again.covariance, learner.covariance, atol=1e-6)


class MeanFirst(StreamingLDA):
    def update_class(self, x: np.ndarray, label: int) -> None:
        before = self.sums[label].copy(), self.counts[label]
        self.sums[label] = (before[0] + x[0]) / (before[1] + 1) * max(before[1], 1)
        super().update_class(x, label)
        self.sums[label] = before[0] + x[0]


class Total(StreamingLDA):
    """The covariance around the mean of all samples."""

    def update_class(self, x: np.ndarray, label: int) -> None:
        n = self.counts.sum()
        deviation = x[0] - self.sums.sum(axis=0) / max(n, 1)
        before = self.covariance
        super().update_class(x, label)
        self.covariance = (n * before + n / (n + 1) * np.outer(deviation, deviation)) / (n + 1)


def test_the_covariance_is_that_within_classes_in_any_order() -> None:
    check(StreamingLDA)


@pytest.mark.parametrize("wrong", [MeanFirst, Total, lambda: StreamingLDA(as_published=True)])
def test_a_wrong_version_would_be_noticed(wrong: Any) -> None:
    with pytest.raises(AssertionError):
        check(wrong)


def test_answers_are_those_of_linear_discriminant_analysis() -> None:
    """With equal priors and equally frequent classes, and next to no shrinkage."""
    x, y = sample(400)
    learner = after_labels(prepared(StreamingLDA(shrinkage=1e-9), 4), x.tolist(), y.tolist())
    other = LinearDiscriminantAnalysis(solver="lsqr", priors=np.full(4, 0.25)).fit(x.astype(float), y)
    np.testing.assert_allclose(learner.predict(x).scores, other.predict_proba(x), atol=1e-4)


def test_the_shrunk_covariance_is_a_mixture() -> None:
    """At .5: L = inverse of .5 S + .5 I, with S = diag(.5, .5) of the worked example."""
    learner = after_labels(prepared(StreamingLDA(shrinkage=0.5), 2, width=2), X, Y)
    np.testing.assert_allclose(learner.covariance, 0.5 * np.eye(2))
    np.testing.assert_allclose(learner.class_vectors(slice(0, 1)), [[2 / 0.75, 0, -2 / 0.75]])


def test_a_class_without_samples_is_never_answered() -> None:
    learner = after_labels(prepared(StreamingLDA(), 3, width=2), X, Y)
    answers = learner.predict(np.array([[-50, -50]], np.float32))
    assert answers.scores[0, 2] == 0


@pytest.mark.parametrize("delay", [0, 6])
def test_one_by_one_in_blocks_is_one_after_another(delay: int) -> None:
    steps = stream(60, 4, 13)
    fast, plain = (
        walk(prepared(StreamingLDA(), 4), steps, labels(4, delay=delay), plainly=plainly) for plainly in (False, True)
    )
    must_equal(fast, plain)


def test_the_work_besides_the_network_is_counted() -> None:
    learner, counter = prepared(StreamingLDA(), 2, width=3), MacCounter()
    counter.attach(learner.model)
    learner.solve(n_labels=5)
    assert counter.forward == 5 * 9 + 27 // 3 + 2 * 9
