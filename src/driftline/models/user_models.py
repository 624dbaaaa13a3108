"""Models as they are given: a function, a class or an object, ours, a plugin's or from a user's file.

What a model becomes is decided by what it is: a network, or anything with `fit` and `predict`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from driftline import registry
from driftline.errors import UserError
from driftline.models.sklearn_models import SklearnModel, factory_for_class, is_estimator_class, wrap_object
from driftline.seeds import Seed
from driftline.types import Network

BUILD_ARGUMENTS = ("shape", "outputs", "seed", "published_answers")
"""Parameters that a model is given by name; all others are its options."""


def factory_of(name: str, thing: Any) -> Callable[..., Network]:
    """A function `(shape, outputs, seed, *, options)` that makes the model."""
    if is_estimator_class(thing):
        return factory_for_class(name, thing)
    make = thing
    if not (isinstance(thing, type | functools.partial) or inspect.isroutine(thing)):
        make = functools.partial(copy.deepcopy, thing)  # the model itself
    parameters = {} if make is not thing else dict(inspect.signature(make).parameters)

    def build(
        shape: tuple[int, ...], outputs: int, seed: Seed, published_answers: Any = None, **options: Any
    ) -> Network:
        known = {"shape": shape, "outputs": outputs, "seed": seed, "published_answers": published_answers}
        taken = {one: value for one, value in known.items() if one in parameters}
        try:
            made = _build_seeded(lambda: make(**taken, **options), seed)
        except (UserError, MemoryError):
            raise
        except Exception as error:
            raise UserError(f"model '{name}' cannot be made: {type(error).__name__}: {error}") from error
        return _as_model(name, made, outputs, seed)

    _describe(build, name, make, parameters)
    return build


def _describe(build: Callable[..., Network], name: str, make: object, parameters: dict[str, inspect.Parameter]) -> None:
    """Give `build` the signature and the types of what it calls, every option by name only."""
    usual = inspect.signature(build).parameters
    first = [usual[one] for one in BUILD_ARGUMENTS if one != "published_answers" or one in parameters]
    rest = [p for p in parameters.values() if p.name not in BUILD_ARGUMENTS and p.kind is not p.VAR_POSITIONAL]
    options = [p if p.kind is p.VAR_KEYWORD else p.replace(kind=p.KEYWORD_ONLY) for p in rest]
    build.__signature__ = inspect.Signature([*first, *options])  # type: ignore[attr-defined]
    build.__annotations__ = registry.types_of(
        name, vars(make).get("__init__", make) if isinstance(make, type) else make
    )


def _build_seeded(make: Callable[[], Network], seed: Seed) -> Network:
    """What `make` returns; a network's initial weights come from the seed alone."""
    if "torch" not in sys.modules:  # it takes seconds to load, and a model of tables has no use for it
        made = make()
        if "torch" not in sys.modules:
            return made
    from driftline.models.preprocessing import call_seeded

    return call_seeded(make, seed)


def _as_model(name: str, made: object, outputs: int, seed: Seed) -> Network:
    """The network in evaluation mode, or an estimator in its adapter."""
    if isinstance(made, SklearnModel):
        return made
    if "torch" in sys.modules:
        from torch import nn

        from driftline.models.preprocessing import to_eval_mode

        if isinstance(made, nn.Module):
            return to_eval_mode(made)
    if all(callable(getattr(made, verb, None)) for verb in ("fit", "predict")):
        model = wrap_object(name, made, outputs, seed)
        model.original = True
        return model
    raise UserError(
        f"model '{name}' made a {type(made).__name__}, which is no torch.nn.Module and lacks fit or predict"
    )
