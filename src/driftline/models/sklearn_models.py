"""scikit-learn estimators as models.

An estimator has no tensors to save. Its state is its training data: restoring fits it again, which gives the
same estimator because its random state is a seed.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from driftline.errors import UserError
from driftline.lazy_rows import LazyRows
from driftline.registry import register
from driftline.seeds import Seed
from driftline.types import Inputs

FitCall = tuple[Literal["fit", "continue"], Inputs, np.ndarray]


class SklearnModel:
    """A scikit-learn regressor, or a classifier with an output for every class, also unseen ones.

    It wraps any object with `fit` and `predict`; `predict_proba` and `partial_fit` are used where they exist.
    """

    is_network: ClassVar[bool] = False
    generates_text: ClassVar[bool] = False
    is_pretrained: ClassVar[bool | None] = None
    loaded_weights: ClassVar[None] = None
    mac_counter: ClassVar[None] = None

    def __init__(self, unfitted: Any, outputs: int) -> None:
        self.n_outputs = outputs
        self.fit_history: list[FitCall] = []
        self.template = unfitted
        self.original = False
        """Whether it wraps a user's own object."""
        self._fitted: Any = None

    def __repr__(self) -> str:
        """Return the name of the estimator, without its preprocessing."""
        *_, (_, last) = getattr(self.template, "steps", [("", self.template)])
        return type(last).__name__

    @property
    def _is_regressor(self) -> bool:
        return self.n_outputs == 1

    @property
    def supports_partial_fit(self) -> bool:
        """Whether it can learn from more data without starting again."""
        return hasattr(self.template, "partial_fit")

    def fit(self, x: Inputs, y: np.ndarray) -> None:
        """Fit from scratch on these data."""
        self.fit_history = [("fit", x, y)]
        if len(np.unique(y)) == 1 and not self._is_regressor:
            # most classifiers refuse labels of a single class
            from sklearn.dummy import DummyClassifier

            self._fitted = DummyClassifier(strategy="most_frequent").fit(_flatten_images(x), y)
        else:
            self._fitted = copy.deepcopy(self.template).fit(_flatten_images(x), y)

    def partial_fit(self, x: Inputs, y: np.ndarray) -> None:
        """Learn from these data on top of the earlier ones."""
        self.fit_history.append(("continue", x, y))
        if self._is_regressor:
            self._fitted = copy.deepcopy(self.template) if self._fitted is None else self._fitted
            self._fitted.partial_fit(_flatten_images(x), y)
            return
        classes = np.arange(self.n_outputs)
        new = self.fit_history[-1:]
        if self._fitted is None or not np.array_equal(self._fitted.classes_, classes):
            # Never fitted, or fitted on only some of the classes, which partial_fit cannot extend: start it over.
            self._fitted, new = copy.deepcopy(self.template), self.fit_history
        for _, inputs, labels in new:
            self._fitted.partial_fit(_flatten_images(inputs), labels, classes=classes)

    def predict(self, x: Inputs) -> np.ndarray:
        """Return the predicted number, or log-probabilities per class: minus infinity for an unseen class.

        Before the first fit all are zero.
        """
        n = x.shape[0] if hasattr(x, "shape") else len(x)
        if self._fitted is None:
            return np.zeros((n, self.n_outputs))
        if self._is_regressor:
            return np.asarray(self._fitted.predict(_flatten_images(x)), float).reshape(n, 1)
        logits = np.full((n, self.n_outputs), -np.inf)
        if hasattr(self._fitted, "predict_proba"):
            with np.errstate(divide="ignore", invalid="ignore"):
                logits[:, self._fitted.classes_] = np.log(self._fitted.predict_proba(_flatten_images(x)))
            logits[np.isnan(logits).any(axis=1)] = 0.0  # too little training data for probabilities
        else:
            logits[np.arange(n), self._fitted.predict(_flatten_images(x))] = 0.0
        return logits

    def features(self, x: Inputs) -> None:
        """Return None: there is no last linear layer."""

    def truncated(self, x: Inputs) -> None:
        """Return None: texts are read to their end."""

    def clone(self) -> SklearnModel:
        """Return a copy that is fitted independently; the fitted estimator is shared and never changed in place."""
        return copy.copy(self)

    def state(self) -> list[FitCall]:
        return list(self.fit_history)

    def restore(self, state: list[FitCall]) -> None:
        self.fit_history, self._fitted = [], None
        for kind, x, y in state:
            self.fit(x, y) if kind == "fit" else self.partial_fit(x, y)


def sklearn_factory(name: str) -> Callable[..., SklearnModel]:
    """Return the factory of an estimator with a dotted name such as `sklearn.naive_bayes.GaussianNB`."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"no scikit-learn estimator '{name}': {error}") from error
    if not is_estimator_class(found):
        raise UserError(f"'{name}' is not an estimator of scikit-learn with fit and predict")
    return factory_for_class(name, found)


def is_estimator_class(thing: object) -> bool:
    """Whether a thing is a class of scikit-learn estimators with `fit` and `predict`."""
    base = getattr(sys.modules.get("sklearn.base"), "BaseEstimator", None)
    if base is None or not (isinstance(thing, type) and issubclass(thing, base)):
        return False
    return all(hasattr(thing, verb) for verb in ("fit", "predict"))


def factory_for_class(name: str, kind: Any) -> Callable[..., SklearnModel]:
    """Return the factory of estimators of this class; its options are the parameters of the class."""

    def build(shape: tuple[int, ...], outputs: int, seed: Seed, **options: Any) -> SklearnModel:
        if options.get("memory") is not None:
            raise UserError(f"{name} would load the pickles in a folder named by memory: leave memory out")
        drawn = {"random_state": seed.value % 2**32} if "random_state" in kind._get_param_names() else {}
        try:
            unfitted = kind(**{**drawn, **options})
        except TypeError as error:
            raise UserError(f"{name} does not take these options: {error}") from error
        return wrap_object(name, unfitted, outputs, seed)

    return build


def wrap_object(name: str, unfitted: object, outputs: int, seed: Seed) -> SklearnModel:
    """Wrap any object with `fit` and `predict`; refuse an estimator for another task."""
    from sklearn.base import BaseEstimator, is_classifier, is_clusterer, is_outlier_detector, is_regressor

    needed, other = ("regressor", is_classifier) if outputs == 1 else ("classifier", is_regressor)
    checks = (other, is_clusterer, is_outlier_detector) if isinstance(unfitted, BaseEstimator) else ()
    if any(check(unfitted) for check in checks):
        raise UserError(f"{name} is not a {needed}, and the task needs one")
    return wrap_estimator(unfitted, outputs, seed)


@register("model", "logistic-regression")
def logistic_regression(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    C: float = 1.0,  # inverse strength of the L2 penalty
) -> SklearnModel:
    """Logistic regression on standardized features; ridge regression for numbers (scikit-learn)."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    last = Ridge(alpha=1 / C) if outputs == 1 else LogisticRegression(C=C, max_iter=1000)
    return wrap_estimator(make_pipeline(StandardScaler(), last), outputs, seed)


@register("model", "random-forest")
def random_forest(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    n_estimators: int = 100,  # number of trees
) -> SklearnModel:
    """Random forest (scikit-learn)."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if outputs == 1 else RandomForestClassifier
    return wrap_estimator(kind(n_estimators=n_estimators), outputs, seed)


@register("model", "hist-gradient-boosting")
def hist_gradient_boosting(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    max_iter: int = 100,  # number of trees of each class
) -> SklearnModel:
    """Histogram gradient boosting (scikit-learn)."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if outputs == 1 else HistGradientBoostingClassifier
    return wrap_estimator(kind(max_iter=max_iter), outputs, seed)


@register("model", "naive-bayes")
def naive_bayes(shape: tuple[int, ...], outputs: int, seed: Seed) -> SklearnModel:
    """Gaussian naive Bayes (scikit-learn); it has `partial_fit`, so `ft` runs with it too."""
    from sklearn.naive_bayes import GaussianNB

    return wrap_estimator(GaussianNB(), outputs, seed)


def wrap_estimator(unfitted: Any, outputs: int, seed: Seed) -> SklearnModel:
    """Wrap a scikit-learn estimator; an unset random state is set from the seed."""
    parameters = unfitted.get_params() if hasattr(unfitted, "get_params") else {}
    unset = [name for name, value in parameters.items() if name.split("__")[-1] == "random_state" and value is None]
    if unset:
        unfitted.set_params(**dict.fromkeys(unset, seed.value % 2**32))
    return SklearnModel(unfitted, outputs)


def _flatten_images(x: Inputs) -> Inputs:
    """Return images as rows of pixels in [0, 1]; other inputs do not change."""
    x = np.asarray(x) if isinstance(x, LazyRows) else x
    if isinstance(x, np.ndarray) and x.ndim > 2:
        x = x.reshape(len(x), -1)
        return x / np.float32(255) if x.dtype == np.uint8 else x
    return x
