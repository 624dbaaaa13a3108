"""Models for tables as they are: numbers with gaps, dates, categories and free text in one frame.

An encoding is fitted on the training rows of its model alone: categories, values that replace missing ones, words. A
category that appears later is missing, as for a deployed model, so the order of time is kept
whatever the table's future holds.

`RowIndexModel` lets such a model run in the loop: streams, records and memories hold row numbers, and the table itself
is held once and never copied.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from driftline.data.formats.column_kinds import column_kind, to_floats
from driftline.errors import UserError
from driftline.models import factory
from driftline.models.sklearn_models import SklearnModel
from driftline.models.user_models import factory_of
from driftline.seeds import Seed
from driftline.tasks import Regression, Task
from driftline.types import Network, Targets

MAX_CATEGORIES = 200  # keep a column's most frequent categories; histogram boosting takes at most 255
MAX_ONE_HOT = 50  # the same for models that need one column per category
N_TOPICS = 16  # columns that a column of texts becomes


class TableEncoder(TransformerMixin, BaseEstimator):
    """A prepared frame (`data.columns`) to a matrix of numbers.

    `one_hot=False`: gaps stay NaN and a category is its code, for histogram boosting; `categorical_` marks the codes.
    `one_hot=True`: gaps become the median and each category a column, for every other model.

    >>> frame = pd.DataFrame({"size": [1.0, np.nan], "kind": pd.Categorical(["a", "b"])})
    >>> TableEncoder().fit(frame).transform(pd.DataFrame({"size": [2.0, 3.0], "kind": ["b", "new"]}))
    array([[ 2.,  1.],
           [ 3., nan]])
    """

    def __init__(self, one_hot: bool = False) -> None:
        self.one_hot = one_hot

    def fit(self, x: pd.DataFrame, y: Targets = None) -> TableEncoder:
        """Learn the encoding from these rows alone."""
        self.columns_ = {name: self._fit_column(x[name]) for name in x.columns}
        return self

    def transform(self, x: pd.DataFrame) -> np.ndarray:
        blocks = [self._transform_column(x[name], *how) for name, how in self.columns_.items()]
        return np.column_stack(blocks)

    @property
    def categorical_(self) -> np.ndarray:
        """Return which columns of the matrix hold category codes."""
        widths = [(kind == "category", N_TOPICS if kind == "text" else 1) for kind, _ in self.columns_.values()]
        return np.concatenate([np.full(width, marked) for marked, width in widths])

    def _fit_column(self, column: pd.Series) -> tuple[str, Any]:
        kind = column_kind(column)
        if kind == "number":
            known = to_floats(column)
            known = known[np.isfinite(known)]
            return ("number", float(np.median(known))) if len(known) else ("nothing", None)
        texts = column.dropna().astype(str)
        if kind == "text":
            return kind, _fit_text_topics(texts)
        if texts.empty:
            return "nothing", None
        counts = texts.value_counts().sort_index().sort_values(ascending=False, kind="stable")
        return kind, pd.Index(sorted(counts.index[: MAX_ONE_HOT if self.one_hot else MAX_CATEGORIES]))

    def _transform_column(self, column: pd.Series, kind: str, known: Any) -> np.ndarray:
        if kind == "nothing":  # it was all gaps where the model was trained, which boosting cannot take
            return np.zeros(len(column))
        if kind == "number":
            values = to_floats(column)
            return np.asarray(np.where(np.isnan(values), known, values)) if self.one_hot else values
        texts = column.astype(object).where(column.notna(), None)
        if kind == "text":
            return _transform_text_topics(texts.fillna("").astype(str), known)
        codes = known.get_indexer(texts.map(str, na_action="ignore"))
        if self.one_hot:
            return np.asarray(codes[:, None] == np.arange(len(known)), float)
        return np.asarray(np.where(codes < 0, np.nan, codes))


class EncodedEstimator(BaseEstimator):
    """A scikit-learn estimator behind an encoding, fitted on the same rows."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, x: pd.DataFrame, y: np.ndarray) -> EncodedEstimator:
        """Fit the encoding, then the estimator."""
        native = "categorical_features" in self.estimator.get_params()
        self.encoder_ = TableEncoder(one_hot=not native).fit(x)
        self.estimator_ = copy.deepcopy(self.estimator)
        if native:
            self.estimator_.set_params(categorical_features=self.encoder_.categorical_)
        self.estimator_.fit(self.encoder_.transform(x), y)
        return self

    def predict(self, x: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.estimator_.predict(self.encoder_.transform(x)))

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and hasattr(self.estimator, name):
            return lambda x: self.estimator_.predict_proba(self.encoder_.transform(x))
        if name == "classes_" and "estimator_" in vars(self):
            return self.estimator_.classes_
        raise AttributeError(name)


class RowIndexModel:
    """A model that takes row numbers and looks the rows up in a table; it trains and answers in its own units.

    `labels`: what the class indices stand for; for a number, `center` and `scale` define the loop's units. An
    exception in the user's model becomes a `UserError`.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        model: Network,
        labels: np.ndarray | None = None,
        center: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        self.table, self.model, self.labels = table, model, labels
        self.center, self.scale = center, scale

    def __deepcopy__(self, memo: dict[int, object]) -> RowIndexModel:
        return RowIndexModel(self.table, copy.deepcopy(self.model, memo), self.labels, self.center, self.scale)

    def __repr__(self) -> str:
        return type(self.model.last if isinstance(self.model, EncodedEstimator) else self.model).__name__

    def fit(self, rows: np.ndarray, y: np.ndarray) -> RowIndexModel:
        """Fit the model on the rows with these numbers."""
        self._call("fit", rows, y.astype(float) * self.scale + self.center if self.labels is None else self.labels[y])
        return self

    def predict(self, rows: np.ndarray) -> np.ndarray:
        answers = np.asarray(self._call("predict", rows))
        if self.labels is None:
            return (answers.astype(float).ravel() - self.center) / self.scale
        return self._to_labels(answers)

    def __getattr__(self, name: str) -> Any:
        if name == "classes_":
            return self._to_labels(np.asarray(self.model.classes_))
        if name == "predict_proba" and hasattr(self.model, name) and hasattr(self.model, "classes_"):
            return lambda rows: np.asarray(self._call(name, rows))
        raise AttributeError(name)

    def _to_labels(self, answers: np.ndarray) -> np.ndarray:
        assert self.labels is not None
        at = pd.Index(self.labels).get_indexer(pd.Index(answers.ravel()))
        if (at < 0).any():
            wrong = answers.ravel()[at < 0][0]
            raise UserError(f"{self} answered '{wrong}', which the target column never holds")
        return np.asarray(at)

    def _call(self, verb: str, rows: np.ndarray, *more: Any) -> Any:
        frame = self.table.iloc[rows]
        try:
            return getattr(self.model, verb)(frame, *more)
        except Exception as error:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise UserError(f"the model {self} failed in {verb} on {len(rows)} rows: {reason}") from error


def row_index_model(
    table: pd.DataFrame,
    model: Network,
    task: Task,
    labels: np.ndarray | None,
    seed: Seed,
    *,
    raw_features: pd.DataFrame | None = None,
) -> SklearnModel:
    """Return a model for the loop from a name, a class or function, or any object with `fit` and `predict`.

    Registered models and bare estimators of scikit-learn are put behind an encoding of the prepared table. What
    prepares its inputs itself, a pipeline or an object of any other kind, gets the rows as they were given. A
    random state that is not set is set from the seed.
    """
    ours = False
    if isinstance(model, str | type) or inspect.isroutine(model):
        built = _build_estimator(model, task, seed)
        model, ours = built.template, not built.original
    else:
        model = copy.deepcopy(model)
    for verb in ("fit", "predict"):
        if not callable(getattr(model, verb, None)):
            raise UserError(f"a model needs fit and predict, and {type(model).__name__} has no {verb}")
    if isinstance(model, BaseEstimator):
        unset = [k for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None]
        model.set_params(**{name: seed.value % 2**32 for name in unset})
        model = EncodedEstimator(model) if ours or not _has_preprocessing(model) else model
    if raw_features is not None and not isinstance(model, EncodedEstimator):
        table = raw_features
    units = {"center": task.center, "scale": task.scale} if isinstance(task, Regression) else {}
    return SklearnModel(RowIndexModel(table, model, labels, **units), task.width)


def _has_preprocessing(model: BaseEstimator) -> bool:
    """Whether an estimator prepares its inputs itself: it is, or has inside, a pipeline or a choice of columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    return any(isinstance(part, Pipeline | ColumnTransformer) for part in (model, *model.get_params().values()))


def _build_estimator(given: str | Callable[..., Network], task: Task, seed: Seed) -> SklearnModel:
    """Return the estimator of a model's name, a class or a function."""
    name = given if isinstance(given, str) else given.__name__
    make = factory(given) if isinstance(given, str) else factory_of(name, given)
    model = make((), task.width, seed)
    if not isinstance(model, SklearnModel):
        raise UserError(f"model '{name}' is a network, and an audit takes models for tables, such as boosting")
    return model


def _fit_text_topics(texts: pd.Series) -> Any:
    """Return tf-idf weights reduced to their main directions; None if there are too few texts."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(max_features=2000, sublinear_tf=True)
    try:
        weighted = words.fit_transform(texts)
    except ValueError:  # no word in any text
        return None
    if min(weighted.shape) <= N_TOPICS:
        return None
    return words, TruncatedSVD(N_TOPICS, random_state=0).fit(weighted)


def _transform_text_topics(texts: pd.Series, known: Any) -> np.ndarray:
    if known is None:
        return np.zeros((len(texts), N_TOPICS))
    words, directions = known
    return np.asarray(directions.transform(words.transform(texts)))
