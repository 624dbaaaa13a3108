"""Build a model from a function, a class or an object: built in, from a plugin, or from a user's file.

A user's model is a network, or anything with `fit` and `predict`. A user's network takes
the options `weights`, a file to load into it, and `head`, "new" for a new last layer.
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
from driftline.io.user_objects import display_name
from driftline.models.sklearn_models import SklearnModel, factory_for_class, is_estimator_class, wrap_object
from driftline.seeds import Seed
from driftline.types import Head, Network, Settings

BUILD_ARGUMENTS = ("shape", "outputs", "seed", "published_answers")
"""Parameters that a model is given by name; all others are its options."""
LOADING: dict[str, tuple[Any, Any]] = {"weights": (str | None, None), "head": (Head, "keep")}
"""The options of a user's network that Driftline itself carries out: their types and defaults."""


def factory_of(name: str, thing: Any) -> Callable[..., Network]:
    """Return a function `(shape, outputs, seed, *, options)` that builds the model."""
    shown = display_name(name)
    if is_estimator_class(thing):
        return factory_for_class(shown, thing)
    make = thing
    if not (isinstance(thing, type | functools.partial) or inspect.isroutine(thing)):
        make = functools.partial(copy.deepcopy, thing)  # the model itself
    parameters = _parameters(shown, thing) if make is thing else {}
    loading = () if registry.describe("model", name) else _loading_options(thing, parameters)

    def build(
        shape: tuple[int, ...], outputs: int, seed: Seed, published_answers: Any = None, **options: Any
    ) -> Network:
        given = {one: options.pop(one) for one in loading if one in options}
        known = {"shape": shape, "outputs": outputs, "seed": seed, "published_answers": published_answers}
        taken = {one: value for one, value in known.items() if one in parameters}
        try:
            made = _build_seeded(lambda: make(**taken, **options), seed)
        except (UserError, MemoryError):
            raise
        except Exception as error:
            raise UserError(f"model '{shown}' cannot be made: {type(error).__name__}: {error}") from error
        model = _as_model(shown, made, outputs, seed)
        _load(shown, model, outputs, seed, given)
        return model

    _describe(build, name, make, parameters, loading)
    return build


def _parameters(name: str, thing: Callable[..., Network]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(thing).parameters)
    except (TypeError, ValueError) as error:
        raise UserError(f"model '{name}' cannot be made: {error}") from error


def _loading_options(thing: object, parameters: dict[str, inspect.Parameter]) -> tuple[str, ...]:
    """Return the options of `LOADING` that a user's model takes, if it is or may return a network."""
    may_be_network = inspect.isroutine(thing) or isinstance(thing, functools.partial) or hasattr(thing, "state_dict")
    return tuple(one for one in LOADING if may_be_network and one not in parameters)


def _load(name: str, model: Network, outputs: int, seed: Seed, given: Settings) -> None:
    """Load a file of weights into a network, or give it a new head, or both."""
    weights, head = given.get("weights"), given.get("head", "keep")
    if weights is None and head == "keep":
        return
    if isinstance(model, SklearnModel):
        raise UserError(f"model '{name}' is not a network, so it has no model.weights and no model.head")
    from driftline.models.preprocessing import call_seeded
    from driftline.models.weights import LoadedWeights, load_weights, new_head, set_loaded

    initialized = call_seeded(lambda: new_head(model, outputs), seed.child("head")) if head == "new" else []
    if weights is None:
        kept = len(model.state_dict()) - len(initialized)
        set_loaded(model, LoadedWeights(name, head, kept, "", "", {}, initialized))
    else:
        advice = "Save it with `torch.save(network.state_dict(), FILE)`"
        set_loaded(model, load_weights(model, weights, head, advice))


def _describe(
    build: Callable[..., Network],
    name: str,
    make: object,
    parameters: dict[str, inspect.Parameter],
    loading: tuple[str, ...],
) -> None:
    """Give `build` the signature and the types of what it calls, every option by name only."""
    usual = inspect.signature(build).parameters
    first = [usual[one] for one in BUILD_ARGUMENTS if one != "published_answers" or one in parameters]
    rest = [p for p in parameters.values() if p.name not in BUILD_ARGUMENTS and p.kind is not p.VAR_POSITIONAL]
    options = [p if p.kind is p.VAR_KEYWORD else p.replace(kind=p.KEYWORD_ONLY) for p in rest]
    options += [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, default=LOADING[one][1]) for one in loading]
    options.sort(key=lambda p: p.kind is p.VAR_KEYWORD)
    build.__signature__ = inspect.Signature([*first, *options])  # type: ignore[attr-defined]
    types = registry.types_of(name, vars(make).get("__init__", make) if isinstance(make, type) else make)
    build.__annotations__ = types | {one: LOADING[one][0] for one in loading}


def _build_seeded(make: Callable[[], Network], seed: Seed) -> Network:
    """Return what `make` returns; a network's initial weights come from the seed alone."""
    if "torch" not in sys.modules:  # it takes seconds to load, and a model of tables has no use for it
        made = make()
        if "torch" not in sys.modules:
            return made
    from driftline.models.preprocessing import call_seeded

    return call_seeded(make, seed)


def _as_model(name: str, made: object, outputs: int, seed: Seed) -> Network:
    """Return the network in evaluation mode, or an estimator in its adapter."""
    if isinstance(made, SklearnModel):
        return made
    if "torch" in sys.modules:
        from torch import nn

        from driftline.models.preprocessing import to_eval_mode

        if isinstance(made, nn.Module):
            if any(nn.parameter.is_lazy(weight) for weight in made.parameters()):
                raise UserError(f"model '{name}' has lazy layers: give them sizes (`shape` is that of an input)")
            return to_eval_mode(made)
    if all(callable(getattr(made, verb, None)) for verb in ("fit", "predict")):
        model = wrap_object(name, made, outputs, seed)
        model.original = True
        return model
    raise UserError(
        f"model '{name}' made a {type(made).__name__}, which is not a torch.nn.Module and lacks fit or predict"
    )
