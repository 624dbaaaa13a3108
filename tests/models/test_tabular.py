"""Encodings know nothing but the rows they were fitted on."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from driftline.data.formats.column_kinds import column_kind, prepare
from driftline.errors import UserError
from driftline.models.tabular import (
    MAX_CATEGORIES,
    EncodedEstimator,
    RowIndexModel,
    TableEncoder,
    row_index_model,
)
from driftline.models.text_columns import N_TOPICS
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression

FRAME = pd.DataFrame(
    {
        "n": [1.0, np.nan, 3.0, np.inf],
        "c": pd.Categorical(["x", "y", None, "x"]),
        "d": pd.to_datetime(["1970-01-02", None, "1970-01-04", "1970-01-05"]),
        "b": [True, False, True, True],
    }
)


def test_codes_gaps_and_days() -> None:
    encode = TableEncoder().fit(FRAME)
    expected = [[1, 0, 1, 1], [np.nan, 1, np.nan, 0], [3, np.nan, 3, 1], [np.nan, 0, 4, 1]]
    np.testing.assert_array_equal(encode.transform(FRAME), expected)
    assert encode.categorical_.tolist() == [False, True, False, False]


def test_one_hot_fills_gaps_with_what_training_knew() -> None:
    encode = TableEncoder(one_hot=True).fit(FRAME)
    later = FRAME.assign(n=np.nan, c="new")
    np.testing.assert_array_equal(encode.transform(later)[:, :3], [[2.0, 0, 0]] * 4)


def test_many_categories_are_cut_and_texts_become_topics() -> None:
    many, _ = prepare(pd.DataFrame({"id": [f"k{i}" for i in range(1000)]}))
    assert np.nanmax(TableEncoder().fit(many).transform(many)) == MAX_CATEGORIES - 1
    random = np.random.default_rng(0)
    texts, _ = prepare(
        pd.DataFrame({"t": [" ".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), 8)) * 2 for _ in range(90)]})
    )
    assert column_kind(texts["t"]) == "text"
    assert TableEncoder().fit(texts).transform(texts).shape == (90, N_TOPICS)


@pytest.mark.parametrize("last", [HistGradientBoostingClassifier(max_iter=3), LogisticRegression()])
def test_a_column_that_was_all_gaps_is_taken(last: object) -> None:
    frame = pd.DataFrame({"a": np.arange(60.0), "gone": np.nan, "none": pd.Series([None] * 60, dtype="category")})
    model = EncodedEstimator(last).fit(frame, (np.arange(60) > 30).astype(int))
    assert len(model.predict(frame.assign(gone=1.0, none="now"))) == 60


def test_rows_are_looked_up_and_the_table_is_never_copied() -> None:
    frame = pd.DataFrame({"a": np.arange(100.0)})
    model = RowIndexModel(frame, EncodedEstimator(LogisticRegression()), np.array(["no", "yes"], object))
    twin = copy.deepcopy(model).fit(np.arange(0, 100, 2), np.repeat([0, 1], 25))
    assert twin.table is frame
    assert twin.predict(np.array([99, 1])).tolist() == [1, 0]
    assert twin.classes_.tolist() == [0, 1]
    assert not hasattr(model.model, "estimator_")


def test_a_number_is_trained_in_its_own_units() -> None:
    class Keeps:
        def fit(self, x: pd.DataFrame, y: np.ndarray) -> None:
            self.mean = float(np.mean(y))

        def predict(self, x: pd.DataFrame) -> np.ndarray:
            return np.full(len(x), self.mean)

    task = Regression(center=100.0, scale=10.0)
    model = row_index_model(pd.DataFrame({"a": [1.0, 2.0]}), Keeps(), task, None, Seed(0))
    model.fit(np.array([0, 1]), task.targets(np.array([90.0, 130.0])))
    assert task.decode(model.predict(np.array([0]))).prediction == pytest.approx([110.0])


def test_an_answer_that_is_no_label_is_named() -> None:
    class Wrong(LogisticRegression):
        def predict(self, x: object) -> np.ndarray:
            return np.array(["maybe"])

    model = RowIndexModel(pd.DataFrame({"a": [1.0]}), Wrong(), np.array(["no", "yes"], object))
    with pytest.raises(UserError, match="answered 'maybe', which the target column never holds"):
        model.predict(np.array([0]))
    with pytest.raises(UserError, match="has no fit"):
        row_index_model(FRAME, object(), Classification(("a", "b")), None, Seed(0))


def news(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Texts of 8 words: one in four words is of the topic of their class, and there are 12 classes."""
    random = np.random.default_rng(seed)
    y = random.integers(12, size=n)
    words = np.where(random.random((n, 8)) < 0.25, 100 * (1 + y[:, None]), 0) + random.integers(40, size=(n, 8))
    frame, _ = prepare(pd.DataFrame({"text": [" ".join(f"w{w}" for w in row) for row in words], "x": 0.0}))
    return frame, y


@pytest.mark.parametrize("last", [HistGradientBoostingClassifier(max_iter=5), LogisticRegression()])
def test_words_that_no_main_direction_has_are_used(last: object) -> None:
    (frame, y), (later, truth) = news(600, 0), news(300, 1)
    model = EncodedEstimator(last).fit(frame, y)
    assert (model.predict(later) == truth).mean() > 0.6
    missing = later.assign(text=pd.Series([None] * len(later), dtype=object))
    assert len(model.predict(missing)) == len(later)


def test_answers_about_training_texts_come_from_other_rows() -> None:
    frame, _ = news(400, 0)
    noise = np.random.default_rng(2).integers(2, size=400)
    encoder = TableEncoder()
    own = encoder.fit_transform(frame, noise)[:, N_TOPICS]
    again = encoder.transform(frame)[:, N_TOPICS]
    assert np.corrcoef(again, noise)[0, 1] > 0.6  # the model of all rows has seen them
    assert abs(np.corrcoef(own, noise)[0, 1]) < 0.15


def test_linear_models_standardize_numbers_beside_words() -> None:
    frame, y = news(300, 0)
    frame["x"] = np.where(y > 5, 1e6, -1e6)
    encoded = TableEncoder(one_hot=True, words=True).fit_transform(frame)
    assert np.abs(encoded[:, :1].toarray()).max() < 3
    assert encoded.shape[1] > 400  # words and pairs of words


def test_an_error_names_the_estimator() -> None:
    model = RowIndexModel(FRAME, EncodedEstimator(LogisticRegression()), np.array(["no", "yes"], object))
    assert repr(model) == "LogisticRegression"


class Indexed(LogisticRegression):
    """Takes class indices only, as the classifiers of XGBoost do."""

    __module__ = "xgboost.sklearn"

    def fit(self, x: np.ndarray, y: np.ndarray) -> Indexed:
        assert sorted(set(y)) == list(range(len(set(y))))
        super().fit(x, y)
        return self


def test_classifiers_of_indices_answer_with_labels() -> None:
    frame = pd.DataFrame({"a": np.arange(40.0)})
    y = np.repeat(["no", "perhaps", "yes"], [15, 10, 15])
    model = EncodedEstimator(Indexed()).fit(frame, y)
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    assert (model.predict(frame) == y).mean() > 0.8


@pytest.mark.parametrize("outputs", [1, 2])
def test_networks_are_models_of_tables(outputs: int) -> None:
    from torch import nn

    frame = pd.DataFrame(
        {"a": np.random.default_rng(0).normal(size=300), "kind": pd.Categorical(["u", "v", "w"] * 100)}
    )
    y = ((frame["a"] > 0) ^ (frame["kind"] == "v")).to_numpy(int)
    labels = np.array(["no", "yes"], object)

    def make(shape: tuple[int, ...]) -> object:
        return nn.Sequential(nn.Linear(shape[0], 16), nn.ReLU(), nn.Linear(16, outputs))

    model = row_index_model(frame, make, Classification(("no", "yes")), labels, Seed(0))
    model.fit(np.arange(200), y[:200])
    answers = model.predict(np.arange(200, 300))
    assert (answers.argmax(axis=1) == y[200:]).mean() > 0.9
    again = row_index_model(frame, make, Classification(("no", "yes")), labels, Seed(0))
    again.fit(np.arange(200), y[:200])
    np.testing.assert_array_equal(again.predict(np.arange(200, 300)), answers)


def test_a_network_that_does_not_fit_the_table_gets_a_sentence() -> None:
    from torch import nn

    frame, labels = pd.DataFrame({"a": np.arange(30.0)}), np.array(["no", "yes"], object)
    for network, reason in ((nn.Linear(7, 2), "does not take the 1 numbers"), (nn.Linear(1, 3), "needs 2 per row")):
        model = row_index_model(frame, network, Classification(("no", "yes")), labels, Seed(0))
        with pytest.raises(UserError, match=reason):
            model.fit(np.arange(30), np.arange(30) % 2)


def test_a_number_is_learned_by_a_network() -> None:
    import torch
    from torch import nn

    frame = pd.DataFrame({"a": np.linspace(-1, 1, 200)})
    task = Regression(center=0.0, scale=1.0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Linear(1, 1)
    model = row_index_model(frame, network, task, None, Seed(0))
    y = 500 * frame["a"].to_numpy() + 1000
    model.fit(np.arange(200), y)
    assert np.abs(model.predict(np.arange(200))[:, 0] - y).mean() < 50
