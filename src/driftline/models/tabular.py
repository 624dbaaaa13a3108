"""Models for tables as they are: numbers with gaps, dates, categories and free text in one frame.

Everything an encoding knows, it learnt from the rows its model is trained on: which categories there are, what stands
in for a gap, which words count. A category met later is a gap, as for a model in use, so the order of time is kept
whatever the table's future holds.

`OnRows` lets such a model stand in the loop: what moves through streams, records and memories are row numbers, and the
table itself is held once and never copied.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from driftline.data.columns import kind_of, numbers
from driftline.errors import UserError
from driftline.models import build
from driftline.models.estimator import Estimator
from driftline.seeds import Seed
from driftline.tasks import Regression, Task

CATEGORIES = 200  # of a column's categories, the most frequent so many; histogram boosting takes at most 255
ONE_HOT = 50  # the same for models that need one column per category
TOPICS = 16  # columns that a column of texts becomes


class Encode(TransformerMixin, BaseEstimator):
    """A prepared frame (`data.columns`) to a matrix of numbers.

    `one_hot=False`: gaps stay NaN and a category is its code, for histogram boosting; `categorical_` marks the codes.
    `one_hot=True`: gaps become the median and each category a column, for every other model.

    >>> frame = pd.DataFrame({"size": [1.0, np.nan], "kind": pd.Categorical(["a", "b"])})
    >>> Encode().fit(frame).transform(pd.DataFrame({"size": [2.0, 3.0], "kind": ["b", "new"]}))
    array([[ 2.,  1.],
           [ 3., nan]])
    """

    def __init__(self, one_hot: bool = False) -> None:
        self.one_hot = one_hot

    def fit(self, x: pd.DataFrame, y: Any = None) -> Encode:
        """Learn the encoding from these rows alone."""
        self.columns_ = {name: self._learnt(x[name]) for name in x.columns}
        return self

    def transform(self, x: pd.DataFrame) -> np.ndarray:
        blocks = [self._encoded(x[name], *how) for name, how in self.columns_.items()]
        return np.column_stack(blocks)

    @property
    def categorical_(self) -> np.ndarray:
        """Which columns of the matrix are codes of categories."""
        widths = [(kind == "category", TOPICS if kind == "text" else 1) for kind, _ in self.columns_.values()]
        return np.concatenate([np.full(width, marked) for marked, width in widths])

    def _learnt(self, column: pd.Series) -> tuple[str, Any]:
        kind = kind_of(column)
        if kind == "number":
            known = numbers(column)
            known = known[np.isfinite(known)]
            return ("number", float(np.median(known))) if len(known) else ("nothing", None)
        texts = column.dropna().astype(str)
        if kind == "text":
            return kind, _topics(texts)
        if texts.empty:
            return "nothing", None
        counts = texts.value_counts().sort_index().sort_values(ascending=False, kind="stable")
        return kind, pd.Index(sorted(counts.index[: ONE_HOT if self.one_hot else CATEGORIES]))

    def _encoded(self, column: pd.Series, kind: str, known: Any) -> np.ndarray:
        if kind == "nothing":  # it was all gaps where the model was trained, which boosting cannot take
            return np.zeros(len(column))
        if kind == "number":
            values = numbers(column)
            return np.asarray(np.where(np.isnan(values), known, values)) if self.one_hot else values
        texts = column.astype(object).where(column.notna(), None)
        if kind == "text":
            return _in_topics(texts.fillna("").astype(str), known)
        codes = known.get_indexer(texts.map(str, na_action="ignore"))
        if self.one_hot:
            return np.asarray(codes[:, None] == np.arange(len(known)), float)
        return np.asarray(np.where(codes < 0, np.nan, codes))


class Tabular(BaseEstimator):
    """A scikit-learn estimator behind an encoding, fitted on the same rows."""

    def __init__(self, last: Any) -> None:
        self.last = last

    def fit(self, x: pd.DataFrame, y: np.ndarray) -> Tabular:
        """Fit the encoding, then the estimator."""
        native = "categorical_features" in self.last.get_params()
        self.encode_ = Encode(one_hot=not native).fit(x)
        self.last_ = copy.deepcopy(self.last)
        if native:
            self.last_.set_params(categorical_features=self.encode_.categorical_)
        self.last_.fit(self.encode_.transform(x), y)
        return self

    def predict(self, x: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.last_.predict(self.encode_.transform(x)))

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and hasattr(self.last, name):
            return lambda x: self.last_.predict_proba(self.encode_.transform(x))
        if name == "classes_" and "last_" in vars(self):
            return self.last_.classes_
        raise AttributeError(name)


class OnRows:
    """A model that is handed row numbers and looks the rows up in a table; it is taught and answers in its own units.

    `labels`: what the class indices stand for; for a number, `centre` and `scale` say how the loop's units are made. A
    model's failure is its owner's to mend, so it is told in a sentence.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        model: Any,
        labels: np.ndarray | None = None,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        self.table, self.model, self.labels = table, model, labels
        self.centre, self.scale = centre, scale

    def __deepcopy__(self, memo: dict[int, Any]) -> OnRows:
        return OnRows(self.table, copy.deepcopy(self.model, memo), self.labels, self.centre, self.scale)

    def __repr__(self) -> str:
        return type(self.model.last if isinstance(self.model, Tabular) else self.model).__name__

    def fit(self, rows: np.ndarray, y: np.ndarray) -> OnRows:
        """Fit the model on the rows with these numbers."""
        self._call("fit", rows, y.astype(float) * self.scale + self.centre if self.labels is None else self.labels[y])
        return self

    def predict(self, rows: np.ndarray) -> np.ndarray:
        answers = np.asarray(self._call("predict", rows))
        if self.labels is None:
            return (answers.astype(float).ravel() - self.centre) / self.scale
        return self._indices(answers)

    def __getattr__(self, name: str) -> Any:
        if name == "classes_":
            return self._indices(np.asarray(self.model.classes_))
        if name == "predict_proba" and hasattr(self.model, name) and hasattr(self.model, "classes_"):
            return lambda rows: np.asarray(self._call(name, rows))
        raise AttributeError(name)

    def _indices(self, answers: np.ndarray) -> np.ndarray:
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


def on_rows(
    table: pd.DataFrame,
    model: Any,
    task: Task,
    labels: np.ndarray | None,
    seed: Seed,
    *,
    as_given: pd.DataFrame | None = None,
) -> Estimator:
    """A model for the loop, from the name of a registered one or any object with `fit` and `predict`.

    Registered models and bare estimators of scikit-learn are put behind an encoding of the prepared table. What
    prepares its inputs itself, a pipeline or an object of any other kind, is handed the rows as they were given. A
    random state that is not set is set from the seed.
    """
    ours = False
    if isinstance(model, str):
        built = _named(model, task, seed)
        model, ours = built.unfitted, not built.given
    else:
        model = copy.deepcopy(model)
    for verb in ("fit", "predict"):
        if not callable(getattr(model, verb, None)):
            raise UserError(f"a model needs fit and predict, and {type(model).__name__} has no {verb}")
    if isinstance(model, BaseEstimator):
        unset = [k for k, v in model.get_params().items() if k.split("__")[-1] == "random_state" and v is None]
        model.set_params(**{name: seed.value % 2**32 for name in unset})
        model = Tabular(model) if ours or not _prepares(model) else model
    if as_given is not None and not isinstance(model, Tabular):
        table = as_given
    units = {"centre": task.centre, "scale": task.scale} if isinstance(task, Regression) else {}
    return Estimator(OnRows(table, model, labels, **units), task.width)


def _prepares(model: BaseEstimator) -> bool:
    """Whether an estimator prepares its inputs itself: it is, or has inside, a pipeline or a choice of columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    return any(isinstance(part, Pipeline | ColumnTransformer) for part in (model, *model.get_params().values()))


def _named(name: str, task: Task, seed: Seed) -> Estimator:
    """The estimator behind a model's name."""
    model = build(name, (), task.width, seed)
    if not isinstance(model, Estimator):
        raise UserError(f"model '{name}' is a network, and an audit takes models for tables, such as boosting")
    return model


def _topics(texts: pd.Series) -> Any:
    """Weighted words, then their main directions; None where there are too few texts for that."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(max_features=2000, sublinear_tf=True)
    try:
        weighted = words.fit_transform(texts)
    except ValueError:  # no word in any text
        return None
    if min(weighted.shape) <= TOPICS:
        return None
    return words, TruncatedSVD(TOPICS, random_state=0).fit(weighted)


def _in_topics(texts: pd.Series, known: Any) -> np.ndarray:
    if known is None:
        return np.zeros((len(texts), TOPICS))
    words, directions = known
    return np.asarray(directions.transform(words.transform(texts)))
