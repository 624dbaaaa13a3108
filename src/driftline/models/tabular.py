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
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier
from sklearn.preprocessing import StandardScaler

from driftline.data.formats.column_kinds import column_kind, to_floats
from driftline.errors import UserError
from driftline.models import factory
from driftline.models.network_estimator import NetworkEstimator, is_network
from driftline.models.sklearn_models import SklearnModel
from driftline.models.text_columns import WordDirections, Words
from driftline.models.user_models import factory_of
from driftline.seeds import Seed
from driftline.tasks import Regression, Task
from driftline.types import Network, Targets

MAX_CATEGORIES = 200  # keep a column's most frequent categories; histogram boosting takes at most 255
MAX_ONE_HOT = 50  # the same for models that need one column per category
INDEXED = ("xgboost",)  # packages whose classifiers take class indices only
LINEAR = ("sklearn.linear_model", "sklearn.svm")  # modules of estimators that take sparse words


class TableEncoder(TransformerMixin, BaseEstimator):
    """A prepared frame (`data.formats.column_kinds`) to a matrix of numbers.

    `one_hot=False`: gaps stay NaN and a category is its code, for histogram boosting; `categorical_` marks the codes.
    `one_hot=True`: gaps become the median and each category a column, for every other model. `words=True`: texts become
    sparse tf-idf weights and other columns are standardized, for linear models; else texts become a few columns.

    >>> frame = pd.DataFrame({"size": [1.0, np.nan], "kind": pd.Categorical(["a", "b"])})
    >>> TableEncoder().fit(frame).transform(pd.DataFrame({"size": [2.0, 3.0], "kind": ["b", "new"]}))
    array([[ 2.,  1.],
           [ 3., nan]])
    """

    def __init__(self, one_hot: bool = False, words: bool = False) -> None:
        self.one_hot, self.words = one_hot, words

    def fit(self, x: pd.DataFrame, y: Targets = None) -> TableEncoder:
        """Learn the encoding from these rows alone."""
        self.columns_ = {name: self._fit_column(x[name], y) for name in x.columns}
        if self.words:
            self.scaler_ = StandardScaler().fit(self._dense(x))
        return self

    def transform(self, x: pd.DataFrame, training: bool = False) -> Any:
        """Return a matrix, sparse if texts are words; `training`: the rows are those of the fit, in their order."""
        if not self.words:
            return self._dense(x, training)
        from scipy.sparse import csr_matrix, hstack

        texts = [known.transform(_texts(x[name])) for name, (kind, known) in self.columns_.items() if kind == "text"]
        return hstack([csr_matrix(self.scaler_.transform(self._dense(x))), *texts], format="csr")

    def fit_transform(self, x: pd.DataFrame, y: Targets = None, **params: Any) -> Any:
        """Fit and return the matrix of the same rows."""
        return self.fit(x, y).transform(x, training=True)

    def _dense(self, x: pd.DataFrame, training: bool = False) -> np.ndarray:
        blocks = [
            self._transform_column(x[name], kind, known, training)
            for name, (kind, known) in self.columns_.items()
            if not (self.words and kind == "text")
        ]
        return np.column_stack(blocks) if blocks else np.zeros((len(x), 1))

    @property
    def categorical_(self) -> np.ndarray:
        """Return which columns of the matrix hold category codes."""
        widths = [(kind == "category", known.width if kind == "text" else 1) for kind, known in self.columns_.values()]
        return np.concatenate([np.full(width, marked) for marked, width in widths])

    def _fit_column(self, column: pd.Series, y: Targets) -> tuple[str, Any]:
        kind = column_kind(column)
        if kind == "number":
            known = to_floats(column)
            known = known[np.isfinite(known)]
            return ("number", float(np.median(known))) if len(known) else ("nothing", None)
        if kind == "text":
            return kind, Words(_texts(column)) if self.words else WordDirections(_texts(column), y)
        counts = _count_categories(column)
        if not counts:
            return "nothing", None
        most = sorted(counts, key=lambda text: (-counts[text], text))
        return kind, pd.Index(sorted(most[: MAX_ONE_HOT if self.one_hot else MAX_CATEGORIES]))

    def _transform_column(self, column: pd.Series, kind: str, known: Any, training: bool) -> np.ndarray:
        if kind == "nothing":  # it was all gaps where the model was trained, which boosting cannot take
            return np.zeros(len(column))
        if kind == "number":
            values = to_floats(column)
            return np.asarray(np.where(np.isnan(values), known, values)) if self.one_hot else values
        if kind == "text":
            return np.asarray(known.transform(_texts(column), training))
        texts, rows = _categories(column)
        codes = np.append(known.get_indexer(texts), -1)[rows]
        if self.one_hot:
            return np.asarray(codes[:, None] == np.arange(len(known)), float)
        return np.asarray(np.where(codes < 0, np.nan, codes))


def _categories(column: pd.Series) -> tuple[list[str], np.ndarray]:
    """Return the categories of a column as texts, and which one each row has; -1 for none."""
    categories = column.astype("category").cat
    return [str(category) for category in categories.categories], categories.codes.to_numpy()


def _count_categories(column: pd.Series) -> Counter[str]:
    """Return the number of rows of each category that occurs."""
    texts, rows = _categories(column)
    counts: Counter[str] = Counter()
    for text, n in zip(texts, np.bincount(rows[rows >= 0], minlength=len(texts)).tolist(), strict=True):
        counts[text] += n
    return +counts  # without those that do not occur


def _texts(column: pd.Series) -> pd.Series:
    return column.astype(object).where(column.notna(), "").astype(str)


def _linear_part(estimator: Any) -> Any:
    """Return a linear model without the scaler before it; None for other models."""
    steps = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
    scaled = all(isinstance(step, StandardScaler) for step in steps[:-1])
    return steps[-1] if scaled and type(steps[-1]).__module__.startswith(LINEAR) else None


class EncodedEstimator(BaseEstimator):
    """A scikit-learn estimator behind an encoding, fitted on the same rows."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, x: pd.DataFrame, y: np.ndarray) -> EncodedEstimator:
        """Fit the encoding, then the estimator."""
        native = "categorical_features" in self.estimator.get_params()
        linear = _linear_part(self.estimator) if any(column_kind(x[name]) == "text" for name in x.columns) else None
        self.encoder_ = TableEncoder(one_hot=not native, words=linear is not None)
        encoded = self.encoder_.fit_transform(x, y)
        self.estimator_ = copy.deepcopy(self.estimator if linear is None else linear)
        if native:
            self.estimator_.set_params(categorical_features=self.encoder_.categorical_)
        indexed = type(self.estimator).__module__.startswith(INDEXED) and is_classifier(self.estimator)
        self.labels_ = np.unique(y) if indexed else None
        self.estimator_.fit(encoded, y if self.labels_ is None else np.searchsorted(self.labels_, y))
        return self

    def predict(self, x: pd.DataFrame) -> np.ndarray:
        answers = np.asarray(self.estimator_.predict(self.encoder_.transform(x)))
        return answers if self.labels_ is None else self.labels_[answers.astype(int)]

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and hasattr(self.estimator, name):
            return lambda x: self.estimator_.predict_proba(self.encoder_.transform(x))
        if name == "classes_" and "estimator_" in vars(self):
            return self.estimator_.classes_ if self.labels_ is None else self.labels_
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
        model = self.model.estimator if isinstance(self.model, EncodedEstimator) else self.model
        *_, (_, last) = getattr(model, "steps", [("", model)])
        return type(last).__name__

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

    Registered models, networks and bare estimators of scikit-learn are put behind an encoding of the prepared table.
    What prepares its inputs itself, a pipeline or an object of any other kind, gets the rows as they were given. A
    random state that is not set is set from the seed.
    """
    ours = False
    if isinstance(model, str | type) or inspect.isroutine(model):
        model, ours = _build_estimator(model, table.shape[1], task, labels, seed)
    elif is_network(model):
        given = model
        model, ours = NetworkEstimator(lambda width: copy.deepcopy(given), labels, seed), True
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


def _build_estimator(
    given: str | Callable[..., Network], columns: int, task: Task, labels: np.ndarray | None, seed: Seed
) -> tuple[Any, bool]:
    """Return the estimator of a model's name, a class or a function, and whether it needs an encoding."""
    name = given if isinstance(given, str) else given.__name__
    make = factory(given) if isinstance(given, str) else factory_of(name, given)
    model = make((columns,), task.width, seed)
    if isinstance(model, SklearnModel):
        return model.template, not model.original
    return NetworkEstimator(lambda width: make((width,), task.width, seed), labels, seed), True
