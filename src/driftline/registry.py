"""Names to things, found when they are first asked for.

A thing registers itself with a decorator in its own file; putting the file into its room is all it takes to
add one. A file is loaded when a name in one of its decorators is asked for, and all of a room only if that finds
nothing: what some of them import takes seconds. Other packages add theirs through the entry-point group
`driftline.<kind>`, and a single file of the user's is named as `path/to/file.py:Name` or `module:Name`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import sys
import typing
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from driftline import user_code
from driftline.errors import UserError, unknown

T = TypeVar("T")

ROOMS = {
    "method": "driftline.learners",
    "dataset": "driftline.data",
    "shift": "driftline.shifts",
    "model": "driftline.models",
    "benchmark": "driftline.benchmarks",
    "metric": "driftline.metrics",
    "sink": "driftline.exports",
    "pretraining": "driftline.learners",
    "objective": "driftline.training",
    "penalty": "driftline.training",
    "measurement": "driftline.training",
}
# What a thing of each kind is: a subclass or an instance of one of these, or a function that returns one.
TYPES = {
    "method": ("driftline.learners.base.Learner",),
    "dataset": ("driftline.data.Dataset",),
    "shift": ("driftline.shifts.base.Shift",),
    "model": ("torch.nn.Module", "sklearn.base.BaseEstimator", "driftline.models.estimator.Estimator"),
    "benchmark": ("driftline.benchmarks.base.Benchmark",),
    "metric": ("driftline.metrics.Metric",),
    "sink": ("driftline.exports.base.Exporter",),
    "pretraining": ("driftline.learners.trained.Trained",),
    "objective": ("driftline.training.objectives.Objective",),
    "penalty": ("driftline.training.penalties.Penalty",),
    "measurement": ("driftline.training.measure.Measurement",),
}
MADE_BY_FUNCTIONS = ("dataset", "model")
# Packages that a module may lack in a base install, and the extra that brings them.
EXTRAS = {
    "torch": "deep",
    "transformers": "text",
    "ray": "ray",
    "river": "river",
    "PIL": "vision",
    "h5py": "vision",
    "ot": "transport",
    "numba": "corruptions",
    "cv2": "corruptions",
}

_things: dict[str, dict[str, Any]] = {kind: {} for kind in ROOMS}
_lacking: dict[str, set[str]] = {}


def register(kind: str, name: str) -> Callable[[T], T]:
    """Make a class or function known under a name: `@register("method", "ft")`."""

    def keep(thing: T) -> T:
        if _things[kind].setdefault(name, thing) is not thing:
            raise ValueError(f"two {kind}s are called '{name}'")
        return thing

    return keep


def get(kind: str, name: str) -> Any:
    """The thing of this kind with this name, or an error that offers the nearest one."""
    if ":" in name:
        thing, own = user_code.load(kind, name)
        must_be(kind, name, thing, own)
        return thing
    if name not in _things[kind] and kind not in _lacking:
        _load_decorated(kind, name)
    things = _things[kind] if name in _things[kind] else _load(kind)
    if name in things:
        return things[name]
    extras = sorted(_lacking[kind])
    lines = "; ".join(f'pip install "driftline[{extra}]"' for extra in extras)
    raise unknown(kind, name, things, f". Some were not loaded for lack of a package: {lines}" if extras else "")


def names(kind: str) -> list[str]:
    """All names of this kind, sorted."""
    return sorted(_load(kind))


def _load_decorated(kind: str, name: str) -> None:
    """Load the files of a room with a decorator that has this name; one that lacks a package is left for `_load`."""
    decorated = re.compile(rf'^@\w+\([^)]*"{re.escape(name)}"', re.MULTILINE)
    for module, text in _texts(ROOMS[kind]).items():
        if decorated.search(text):
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    raise


@functools.cache
def _texts(room: str) -> dict[str, str]:
    """The source of each file of a room, by the name of its module; a folder counts for nothing."""
    folders = importlib.import_module(room).__path__
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.py"))]
    return {f"{room}.{file.stem}": file.read_text(encoding="utf-8") for file in files if file.stem != "__init__"}


def _load(kind: str) -> dict[str, Any]:
    if kind not in _lacking:
        _lacking[kind] = set()
        room = importlib.import_module(ROOMS[kind])
        for module in pkgutil.iter_modules(room.__path__):
            try:
                importlib.import_module(f"{ROOMS[kind]}.{module.name}")
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    raise
                _lacking[kind].add(EXTRAS[error.name])
        for entry in entry_points(group=f"driftline.{kind}"):
            _plug_in(kind, entry)
    return _things[kind]


def _plug_in(kind: str, entry: EntryPoint) -> None:
    """Register what another package brings; its fault must not take ours down."""
    try:
        thing = entry.load()
        must_be(kind, entry.name, thing, own=True)
    except Exception as error:
        reason = re.sub(r" \([^()]*[\\/][^()]*\)", "", " ".join(str(error).split()))  # without the path of a file
        plugin = entry.dist.name if entry.dist else entry.value
        text = "the plugin '%s' does not provide the %s '%s': %s: %s. Update or uninstall it"
        user_code.log.warning(text, plugin, kind, entry.name, type(error).__name__, reason.rstrip("."))
    else:
        _things[kind].setdefault(entry.name, thing)


def must_be(kind: str, name: str, thing: Any, own: bool) -> None:
    """Refuse a thing that is not what its kind says, before it is called.

    A function in the user's `own` file need not say what it returns; one in an installed package must.
    """
    inner = thing.func if isinstance(thing, functools.partial) else thing
    types = [found for path in TYPES[kind] if (found := _loaded(path))]
    if kind in MADE_BY_FUNCTIONS and callable(inner) and not isinstance(inner, type):
        made = (inner,) if own else (inner, _returned(inner))
        fits = own or any(_is_a(found, one) for found in types for one in made)
    elif kind in ("metric", "model"):
        duck = own and kind == "model" and all(callable(getattr(inner, verb, None)) for verb in ("fit", "predict"))
        fits = duck or any(_is_a(found, inner) for found in types)
    else:
        fits = isinstance(inner, type) and any(_is_a(found, inner) for found in types)
    if not fits:
        said = ", nor a function annotated to return one" if kind in MADE_BY_FUNCTIONS else ""
        raise UserError(f"{kind} '{name}' is not a {' or '.join(TYPES[kind])}{said}")


def _loaded(path: str) -> Any:
    """The type with this path; None if its module was never loaded, so that nothing can be of that type."""
    module, _, name = path.rpartition(".")
    return getattr(sys.modules.get(module), name, None)


def _returned(function: Any) -> Any:
    """Return the type that a function is annotated to return; None if there is none or it cannot be read."""
    function = inspect.unwrap(function)
    annotated = SimpleNamespace(__annotations__={"return": getattr(function, "__annotations__", {}).get("return")})
    try:
        return typing.get_type_hints(annotated, getattr(function, "__globals__", {}))["return"]
    except (NameError, AttributeError, TypeError):
        return None


def types_of(name: str, thing: Any) -> dict[str, Any]:
    """The types that a thing is annotated with: of its parameters, or its fields, and what it returns."""
    inner = inspect.unwrap(thing.func if isinstance(thing, functools.partial) else thing)
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise UserError(f"{name}: cannot read its type annotations: {error}") from error


def _is_a(kind: Any, thing: Any) -> bool:
    """Whether a thing is a subclass or an instance of a type; of a protocol, a class with all of its members."""
    if getattr(kind, "_is_protocol", False):
        members = {*kind.__annotations__, *(name for name in vars(kind) if not name.startswith("_"))}
        return isinstance(thing, type) and all(hasattr(thing, member) for member in members)
    return issubclass(thing, kind) if isinstance(thing, type) else isinstance(thing, kind)
