"""Exemplar tuning against numbers worked by hand, and a training written out in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax

from driftline.errors import UserError
from driftline.learners.prototypes.exemplar_tuning import ExemplarTuning

from ..one_by_one import after_labels, labels, prepared, stream, walk

X, Y = [[1, 0], [3, 0], [0, 1]], [0, 0, 1]
QUERY = np.array([[1.5, 0.5]], np.float32)


def tuned(classes: int = 2, width: int = 2, **settings: Any) -> Any:
    return prepared(ExemplarTuning(**settings), classes, width=width)


def test_the_worked_example() -> None:
    """Logits 1.5 and .5; with means of raw features they would be 3 and .5."""
    learner = after_labels(tuned(), X, Y)
    answers = learner.predict(QUERY)
    assert answers.scores[0, 0] == pytest.approx(0.731059, abs=1e-6)
    assert answers.distance[0] == pytest.approx(-1.5)
    with torch.no_grad():
        learner.head["residual"][1] = torch.tensor([1.0, 0.0])
    learner.rebuild_class_vectors()
    assert learner.predict(QUERY).prediction[0] == 1
    assert learner.predict(QUERY).distance[0] == pytest.approx(-2.0)


def test_a_class_is_the_mean_of_unit_features() -> None:
    """The unit vector along their sum would be (.316228, .948683), the mean of raw features (.5, 1.5)."""
    learner = after_labels(tuned(), [[1, 0], [0, 3]], [0, 0])
    assert learner.class_vectors(slice(0, 1)).tolist() == [[0.5, 0.5]]


def test_other_similarities() -> None:
    cosine = after_labels(tuned(similarity="cosine", scale=3.0), X, Y).predict(QUERY)
    assert cosine.distance[0] == pytest.approx(-3 * 1.5 / np.sqrt(2.5))
    np.testing.assert_allclose(cosine.scores[0], softmax(3 * np.array([1.5, 0.5]) / np.sqrt(2.5)), rtol=1e-6)
    euclidean = after_labels(tuned(similarity="euclidean"), X, Y).predict(QUERY)
    assert euclidean.distance[0] == pytest.approx(0.5)
    np.testing.assert_allclose(euclidean.scores[0], softmax([-0.5, -2.5]), rtol=1e-6)


def test_the_gradient_is_error_times_feature() -> None:
    """One step from zero moves residual i by -lr (p_i - [y = i]) f; the sample itself is in the mean by then."""
    learner = after_labels(tuned(train_every=1, epochs=1, lr=0.1, weight_decay=0.0), [[3, 4]], [1])
    assert learner.head["residual"].abs().max() == 0  # a single class: p = 1
    learner = after_labels(tuned(train_every=2, epochs=1, lr=0.1, weight_decay=0.0, batch=2), [[3, 4], [0, 2]], [0, 1])
    x, means = np.array([[3, 4], [0, 2]]), np.array([[0.6, 0.8], [0, 1]])
    error = softmax(x @ means.T, axis=1) - np.eye(2)
    np.testing.assert_allclose(learner.head["residual"].detach(), -0.1 * error.T @ x / 2, rtol=1e-5)


def slopes(similarity: str, x: np.ndarray, y: np.ndarray, class_vectors: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The gradient of the mean cross-entropy with respect to the vectors, by differences in double precision."""

    def loss(moved: np.ndarray) -> float:
        logits = x @ moved.T
        if similarity == "euclidean":
            logits = -((x[:, None] - moved[None]) ** 2).sum(axis=2)
        logits[:, ~known] = -np.inf
        return float(-np.log(softmax(logits, axis=1)[np.arange(len(y)), y]).mean())

    found = np.zeros_like(class_vectors)
    for place in np.ndindex(*class_vectors.shape):
        step = np.zeros_like(class_vectors)
        step[place] = 1e-5
        found[place] = (loss(class_vectors + step) - loss(class_vectors - step)) / 2e-5
    return found


@pytest.mark.parametrize("similarity", ["linear", "euclidean"])
def test_two_training_rounds_written_out(similarity: Any) -> None:
    """SGD with momentum and decay over all samples so far; the state is kept; the mean moves on between trainings."""
    every, epochs, batch, classes = 10, 2, 4, 4
    learner = tuned(classes, 3, train_every=every, epochs=epochs, batch=batch, lr=0.1, similarity=similarity)
    samples = stream(24, classes - 1, 24, seed=1, width=3)[0].samples  # class 3 never comes
    x, y = samples.x.astype(float), samples.y
    after_labels(learner, samples.x, y)
    residual, speed = np.zeros((classes, 3)), np.zeros((classes, 3))
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    for training_round in range(2):
        n = every * (training_round + 1)
        means = np.stack([units[:n][y[:n] == k].mean(axis=0) if k in y[:n] else np.zeros(3) for k in range(classes)])
        for epoch in range(epochs):
            draws = learner.seed.child("lesson", training_round, epoch).torch()
            for rows in torch.randperm(n, generator=draws).split(batch):
                rows = rows.numpy()
                slope = slopes(similarity, x[rows], y[rows], means + residual, np.isin(range(classes), y[:n]))
                speed = 0.9 * speed + slope + 1e-4 * residual
                residual = residual - 0.1 * speed
    assert learner.training_rounds == 2
    np.testing.assert_allclose(learner.head["residual"].detach(), residual, rtol=2e-3, atol=2e-4)
    all_means = np.stack([units[y == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(learner.class_vectors(slice(0, 3)), all_means + residual[:3], rtol=2e-3, atol=2e-4)
    assert np.abs(residual).max() > 0.1  # more than the tolerance by far
    assert residual[3].tolist() == [0, 0, 0]


def test_the_scale_of_cosines_is_trained() -> None:
    learner = tuned(3, 4, train_every=10, similarity="cosine", lr=0.5)
    samples = stream(40, 3, 40, width=4)[0].samples
    after_labels(learner, samples.x, samples.y)
    trained = learner.head["scale"].item()
    assert trained > 4.5  # clusters far apart: sharper is better
    unit = samples.x[:1] / np.linalg.norm(samples.x[:1])
    class_vectors = learner.means(slice(None)) + learner.head["residual"].detach().numpy()
    cosines = unit @ (class_vectors / np.linalg.norm(class_vectors, axis=1, keepdims=True)).T
    np.testing.assert_allclose(learner.predict(samples.x[:1]).scores, softmax(trained * cosines, axis=1), rtol=1e-4)


def test_the_first_answer_after_a_training_round_knows_it() -> None:
    without = walk(tuned(3, 6, train_every=0), stream(120, 3, 64), labels(3))
    learner = tuned(3, 6, train_every=50, epochs=1)
    answers = walk(learner, stream(120, 3, 64), labels(3))
    assert learner.training_rounds == 2
    np.testing.assert_array_equal(answers.scores[:50], without.scores[:50])  # alike until the first training
    assert not np.array_equal(answers.scores[50], without.scores[50])


def test_a_scale_of_zero_is_refused() -> None:
    with pytest.raises(UserError, match="scale=0"):
        prepared(ExemplarTuning(scale=0.0), 2)
