"""Nearest class mean against numbers worked by hand and a plain computation from all samples before."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from driftline import registry
from driftline.learners.prototypes.ncm import NearestClassMean

from ..one_by_one import after_labels, labels, prepared, stream, walk

X, Y = [[1, 0], [3, 0], [0, 1]], [0, 0, 1]
QUERY = np.array([[1.5, 0.5]], np.float32)


def test_the_worked_example() -> None:
    """Squared distances .5 and 2.5; with plain distances it would be .705584, with sums for means class 1."""
    answers = after_labels(prepared(NearestClassMean(), 2, width=2), X, Y).predict(QUERY)
    assert answers.scores[0, 0] == pytest.approx(0.880797, abs=1e-6)
    assert answers.distance[0] == pytest.approx(0.5)
    assert answers.prediction[0] == 0
    plain = softmax(-np.sqrt([0.5, 2.5]))
    assert plain[0] == pytest.approx(0.705584, abs=1e-6)
    assert ((QUERY[0] - [4, 0]) ** 2).sum() == pytest.approx(6.5)


def test_a_class_without_data_is_no_zero_vector() -> None:
    """Near the origin, where the zero vectors of the 98 other classes would be nearest."""
    learner = after_labels(prepared(NearestClassMean(), 100, width=2), X, Y)
    answers = learner.predict(np.zeros((1, 2), np.float32))
    assert answers.prediction[0] == 1
    assert answers.scores[0, 2:].max() == 0
    assert answers.scores[0, :2].sum() == pytest.approx(1)


def from_scratch(x: np.ndarray, y: np.ndarray, t: int, until: int) -> np.ndarray:
    """Minus squared distances of sample t to the means of the samples before `until`, in double precision."""
    out = np.full(y.max() + 1, -np.inf)
    for k in np.unique(y[:until]):
        out[k] = -((x[:until][y[:until] == k].astype(float).mean(axis=0) - x[t]) ** 2).sum()
    return out


@pytest.mark.parametrize("delay", [0, 6])
def test_an_answer_uses_all_labels_before_it_and_none_after(delay: int) -> None:
    steps = stream(70, 5, 70, seed=3)
    x, y = steps[0].samples.x, steps[0].samples.y
    answers = walk(prepared(NearestClassMean(), 5), steps, labels(5, delay=delay))
    early = 0
    for t in range(delay + 1, 70):
        exact = from_scratch(x, y, t, t - delay)
        np.testing.assert_allclose(answers.scores[t], softmax(exact), rtol=1e-3, atol=1e-30)
        assert answers.distance[t] == pytest.approx(-exact.max(), rel=1e-5)
        knows_more = softmax(from_scratch(x, y, t, t - delay + 1))
        early += not np.allclose(answers.scores[t], knows_more, rtol=1e-3, atol=1e-30)
    assert early > 40  # means that know one label more answer otherwise


def test_it_keeps_no_samples() -> None:
    learner = prepared(NearestClassMean(), 5)
    walk(learner, stream(50, 5, 10), labels(5))
    assert (len(learner.buffer), len(learner.pending_features), learner.labels.n_labels) == (0, 0, 50)


@pytest.mark.parametrize(("name", "pretraining"), [("prototypical", "prototypes"), ("meta-baseline", "meta-baseline")])
def test_meta_learners_are_ncm_on_another_network(name: str, pretraining: str) -> None:
    made = registry.get("method", name)()
    assert (type(made), made.pretraining) == (NearestClassMean, pretraining)
