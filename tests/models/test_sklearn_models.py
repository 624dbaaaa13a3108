from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.naive_bayes import GaussianNB

from driftline import models
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.tasks import Classification

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int) * 2  # classes 0 and 2 of three
TASK = Classification(("a", "b", "c"))


def scores(model: object, x: np.ndarray = X) -> np.ndarray:
    return TASK.decode(model.predict(x)).scores


@pytest.mark.parametrize(
    "name", ["logistic-regression", "random-forest", "hist-gradient-boosting", "naive-bayes", "sklearn.svm.LinearSVC"]
)
def test_a_class_never_seen_scores_zero(name: str) -> None:
    model = models.build(name, (4,), 3)
    assert scores(model).tolist() == [[pytest.approx(1 / 3)] * 3] * 60
    model.fit(X, Y)
    assert (scores(model)[:, 1] == 0).all()
    assert (scores(model).argmax(1) == Y).mean() > 0.85


@pytest.mark.parametrize("name", ["logistic-regression", "random-forest", "naive-bayes"])
def test_one_class_alone_can_be_learnt(name: str) -> None:
    model = models.build(name, (4,), 3)
    model.fit(X, np.full(60, 2))
    assert scores(model).tolist() == [[0, 0, 1]] * 60


def test_going_on_is_partial_fit() -> None:
    model, plain = models.build("naive-bayes", (4,), 3), GaussianNB()
    for part in (slice(0, 20), slice(20, 60)):
        model.partial_fit(X[part], Y[part])
        plain.partial_fit(X[part], Y[part], classes=[0, 1, 2])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(scores(model), plain.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("first", [np.full(20, 2), Y[:20]], ids=["one class", "two classes"])
def test_going_on_after_a_fit_on_some_of_the_classes(first: np.ndarray) -> None:
    model, plain = models.build("naive-bayes", (4,), 3), models.build("naive-bayes", (4,), 3)
    model.fit(X[:20], first)
    plain.partial_fit(X[:20], first)
    for one in (model, plain):
        one.partial_fit(X[20:], np.arange(40) % 3)
    np.testing.assert_allclose(scores(model), scores(plain))
    assert (scores(model)[:, 1] > 0).any()


def test_too_little_to_have_an_opinion_is_no_opinion() -> None:
    model = models.build("naive-bayes", (4,), 3)
    model.partial_fit(X[:1], Y[:1])
    assert np.isfinite(scores(model)).all()


@pytest.mark.parametrize("name", ["random-forest", "naive-bayes"])
def test_restoring_repeats_the_training_rounds(name: str) -> None:
    model, fresh = (models.build(name, (4,), 3, Seed(3)) for _ in range(2))
    model.fit(X, np.arange(60) % 3)
    if model.supports_partial_fit:
        model.partial_fit(X[:9], Y[:9])
    fresh.restore(model.state())
    assert np.array_equal(model.predict(X), fresh.predict(X))


def test_the_seed_is_the_random_state() -> None:
    def made(seed: int) -> np.ndarray:
        model = models.build("random-forest", (4,), 3, Seed(seed), n_estimators=5)
        model.fit(X, np.arange(60) % 3)
        return model.predict(X + 0.3)

    assert np.array_equal(made(0), made(0))
    assert not np.array_equal(made(0), made(1))


def test_pictures_are_flattened_to_fractions_and_sparse_tables_are_taken() -> None:
    images = RNG.integers(0, 256, (60, 2, 2, 1), dtype=np.uint8)
    one, other = (models.build("naive-bayes", (4,), 3) for _ in range(2))
    one.fit(images, Y)
    other.fit(images.reshape(60, 4) / np.float32(255), Y)
    assert np.array_equal(one.predict(images), other.predict(images.reshape(60, 4) / np.float32(255)))
    sparse = models.build("sklearn.naive_bayes.BernoulliNB", (4,), 3)
    sparse.fit(scipy.sparse.csr_matrix(X), Y)
    assert sparse.predict(scipy.sparse.csr_matrix(X)).shape == (60, 3)


def test_wrong_names_and_options_are_sentences() -> None:
    with pytest.raises(UserError, match="no scikit-learn estimator"):
        models.build("sklearn.nothing.Here")
    with pytest.raises(UserError, match="does not take these options"):
        models.build("sklearn.naive_bayes.GaussianNB", (4,), 3, depth=3)


def test_it_is_called_by_the_name_of_what_answers() -> None:
    assert repr(models.build("logistic-regression", (2,), 3)) == "LogisticRegression"
    assert repr(models.build("naive-bayes", (2,), 3)) == "GaussianNB"
