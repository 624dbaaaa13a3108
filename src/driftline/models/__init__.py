"""Networks, and adapters for scikit-learn estimators.

A model is registered under its name: a function or class whose parameters `shape` (that of one input as the dataset
stores it), `outputs` (the number of raw outputs that the task needs) and `seed` are filled in, as far as it has them.
Its other parameters are its options: on the command line `--set model.<option>=<value>`. One with a parameter
`published_answers` gets a published model's own answers, where the data hold them. `build` makes a model of any name:
a network, or a `SklearnModel` around anything with `fit` and `predict`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from driftline import registry
from driftline.device import place
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.types import Network

PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib")


def build(
    name: str, shape: tuple[int, ...] = (32, 32, 3), outputs: int = 10, seed: Seed = Seed(0), **options: Any
) -> Network:
    """Return a freshly initialized model, on the current device: `build("mlp", shape=(8, 8, 1), outputs=10)`."""
    return place(factory(name)(shape, outputs, seed, **options))


def factory(name: str) -> Callable[..., Network]:
    """Return the function behind a name, also one such as `sklearn.linear_model.Perceptron` or `timm:resnet18`."""
    if name.startswith(("lightgbm.", "xgboost.")) and ":" not in name:
        name = ":".join(name.rsplit(".", 1))
    if name.startswith("sklearn.") and ":" not in name:
        from driftline.models.sklearn_models import sklearn_factory

        return sklearn_factory(name)
    if name.startswith("timm:"):
        from driftline.models.timm_models import timm_network

        return timm_network(name.removeprefix("timm:"))
    _check_name(name)
    from driftline.models.user_models import factory_of

    return factory_of(name, registry.get("model", name))


def _check_name(name: str) -> None:
    """Refuse `--model prod.pkl` and `--model mine.py`, and explain how to name such a model."""
    if name.endswith(PICKLE_SUFFIXES):
        load = "joblib.load(file)" if name.endswith(".joblib") else 'pickle.load(open(file, "rb"))'
        package = load.partition(".")[0]
        raise UserError(
            f"{name} is a pickle, and to load one is to run the code in it. If you trust it, write a file prod.py with "
            f"`import {package}` and `def make(*, file: str = {name!r}): return {load}`, and give prod.py:make"
        )
    if name.endswith(".py"):
        raise UserError(f"{name} is a file: name the class or function in it that is the model, {name}:NAME")


def is_estimator(name: str) -> bool:
    """Return whether a model is fitted as a whole, so that settings of gradient training do not apply to it."""
    from sklearn.base import BaseEstimator

    from driftline.models.sklearn_models import SklearnModel

    made = typing.get_type_hints(factory(name)).get("return")
    return isinstance(made, type) and issubclass(made, (SklearnModel, BaseEstimator))


def needs_published_answers(name: str) -> bool:
    """Whether a model is built from published answers."""
    parameter = inspect.signature(factory(name)).parameters.get("published_answers")
    return parameter is not None and parameter.kind is not parameter.KEYWORD_ONLY
