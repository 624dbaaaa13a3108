"""Networks, and adapters that let scikit-learn estimators stand in their place.

A model is a function `(shape, outputs, seed, **options)`, registered under its name: `shape` is that of one input as
the dataset stores it, `outputs` the number of raw outputs that the task needs. Its keyword-only parameters are its
options: on the command line `--set model.<option>=<value>`. One with a fourth parameter `said` is handed a published
model's own answers, where the data hold them.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from driftline import registry
from driftline.seeds import Seed


def build(
    name: str, shape: tuple[int, ...] = (32, 32, 3), outputs: int = 10, seed: Seed = Seed(0), **options: Any
) -> Any:
    """A freshly initialised model: `build("mlp", shape=(8, 8, 1), outputs=10)`."""
    return maker(name)(shape, outputs, seed, **options)


def maker(name: str) -> Callable[..., Any]:
    """The function behind a name; `sklearn.ensemble.RandomForestClassifier` and `timm:resnet18` are names too."""
    if name.startswith("sklearn."):
        from driftline.models.estimator import named

        return named(name)
    if name.startswith("timm:"):
        from driftline.models.packaged import timm_network

        return timm_network(name.removeprefix("timm:"))
    make: Callable[..., Any] = registry.get("model", name)
    return make


def is_estimator(name: str) -> bool:
    """Whether a model is fitted as a whole, and settings of training by gradients mean nothing to it."""
    from driftline.models.estimator import Estimator

    make = maker(name)
    made = make if isinstance(make, type) else typing.get_type_hints(make).get("return")
    return isinstance(made, type) and issubclass(made, Estimator)


def takes_said(name: str) -> bool:
    """Whether a model is made of what a published one said."""
    parameter = inspect.signature(maker(name)).parameters.get("said")
    return parameter is not None and parameter.kind is not parameter.KEYWORD_ONLY
