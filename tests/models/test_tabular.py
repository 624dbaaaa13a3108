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
    N_TOPICS,
    EncodedEstimator,
    RowIndexModel,
    TableEncoder,
    row_index_model,
)
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
