"""Registered things by kind and name.

A thing registers itself with a decorator in its own file. `_registry_index.py`, written by `./dev index`, names the
module of each: `get` imports that module alone, and `names` and `describe` import nothing. Other packages add theirs
through the entry-point group `driftline.<kind>`; a user's own file is named as `path/to/file.py:Name` or `module:Name`,
an object that was passed from Python by its class and a hash.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from driftline.errors import FEW_NAMES, UserError, unknown_name
from driftline.io import user_code, user_objects

if typing.TYPE_CHECKING:
    from driftline.types import JsonObject

T = TypeVar("T")

# What a thing of each kind is: a subclass or an instance of one of these, or a function that returns one.
TYPES = {
    "method": ("driftline.learners.base.Learner",),
    "dataset": ("driftline.data.Dataset",),
    "shift": ("driftline.shifts.base.Shift",),
    "model": ("torch.nn.Module", "sklearn.base.BaseEstimator", "driftline.models.sklearn_models.SklearnModel"),
    "benchmark": ("driftline.benchmarks.base.Benchmark",),
    "metric": ("driftline.metrics.Metric",),
    "exporter": ("driftline.exports.base.Exporter",),
    "figure": ("driftline.report.figures.base.Figure",),
    "paper-table": ("driftline.report.tables.model.Table",),
    "pretraining": ("driftline.learners.supervised.base.SupervisedLearner",),
    "objective": ("driftline.training.objectives.Objective",),
    "penalty": ("driftline.training.regularization.Penalty",),
    "measurement": ("driftline.training.measurements.Measurement",),
    "label-rule": ("driftline.label_rules.base.LabelRule",),
}
KINDS = tuple(TYPES)
MADE_BY_FUNCTIONS = ("dataset", "model", "paper-table")
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

_things: dict[str, JsonObject] = {kind: {} for kind in KINDS}


class Entry(NamedTuple):
    """The index's description of a thing."""

    module: str
    summary: str
    """The first line of its docstring; for a metric, its formula."""
    settings: dict[str, tuple[Any, ...]] | None = None
    """The type of each setting, and its default if it has one; None if the thing itself must be asked."""
    reveal: str = ""
    """The member of `Reveal` that a method needs or a benchmark gives."""
    meanings: Mapping[str, str] = MappingProxyType({})
    """What each setting means."""
    paper: str = ""
    inherits: tuple[str, ...] = ()
    """The modules of other classes that a method or a pretraining extends."""
    facts: Mapping[str, Any] = MappingProxyType({})
    """What planning needs to know about a method, where it differs from the usual; where a dataset comes from."""


@functools.cache
def index() -> JsonObject:
    """Return the generated table of all things; the help of the command line does without, because it is long."""
    from driftline._registry_index import INDEX

    return INDEX


def register(kind: str, name: str) -> Callable[[T], T]:
    """Make a class or function known under a name: `@register("method", "ft")`."""

    def decorate(thing: T) -> T:
        if _things[kind].setdefault(name, thing) is not thing:
            raise ValueError(f"two {kind}s are called '{name}'")
        return thing

    return decorate


def get(kind: str, name: str) -> Any:
    """Return the thing of this kind with this name, or raise an error that offers the nearest one."""
    if user_objects.is_object(name):
        return user_objects.find(kind, name).thing
    if ":" in name:
        thing, own = user_code.load(kind, name)
        must_be(kind, name, thing, own)
        return thing
    if name not in _things[kind] and (entry := describe(kind, name)):
        _import(kind, name, entry.module)
    if name not in _things[kind]:
        _load_plugins(kind)
    if name not in _things[kind]:
        known = names(kind)
        hint = f". `driftline list {kind}s` shows all" if len(known) > FEW_NAMES else ""
        raise unknown_name(kind, name, known, _dotted_hint(name) or hint)
    return _things[kind][name]


def _dotted_hint(name: str) -> str:
    """Return how to write a name such as `lightgbm.LGBMClassifier`; nothing for other names.

    >>> _dotted_hint("lightgbm.LGBMClassifier")
    ". A class of another package is written as 'lightgbm:LGBMClassifier'"
    >>> _dotted_hint("erm")
    ''
    """
    module, _, attribute = name.rpartition(".")
    if not module or not all(part.isidentifier() for part in name.split(".")):
        return ""
    return f". A class of another package is written as '{module}:{attribute}'"


def names(kind: str) -> list[str]:
    """Return all names of this kind, sorted."""
    _load_plugins(kind)
    return sorted({*index().get(kind, {}), *_things[kind]})


def name_of(kind: str, thing: object) -> str | None:
    """Return the name of one of this package's own things; None for any other."""
    module = getattr(thing, "__module__", None)
    names = (name for name, row in index().get(kind, {}).items() if row[0] == module)
    return next((name for name in names if get(kind, name) is thing), None)


def describe(kind: str, name: str) -> Entry | None:
    """Return the index's entry of a thing; None for a user's or a plugin's."""
    row = index().get(kind, {}).get(name)
    return Entry(*row) if row else None


def summary(kind: str, name: str) -> str:
    """Return the first line of a thing's description, from the index where it has one."""
    entry = describe(kind, name)
    return entry.summary if entry else first_line(get(kind, name))


def first_line(thing: object) -> str:
    """Return a metric's formula, else the first line of a docstring; a preset adds the settings that it changes."""
    if hasattr(thing, "formula"):
        return str(thing.formula)
    if isinstance(thing, functools.partial):
        settings = ", ".join(f"{key}={value}" for key, value in thing.keywords.items())
        return f"{first_line(thing.func)} [{settings}]"
    return (inspect.getdoc(thing) or "").split("\n")[0]


def inherited_modules(thing: object) -> tuple[str, ...]:
    """Return the modules of this package that define a thing and the classes that it extends, its own module first.

    >>> from driftline.learners.frozen import Frozen
    >>> inherited_modules(Frozen)
    ('driftline.learners.frozen', 'driftline.learners.base')
    """
    inner = thing.func if isinstance(thing, functools.partial) else thing
    modules = (base.__module__ for base in inner.__mro__) if isinstance(inner, type) else ()
    return tuple(dict.fromkeys(module for module in modules if module.startswith("driftline.")))


def _import(kind: str, name: str, module: str) -> None:
    """Import the module of a thing; a missing optional package is an error that names the extra."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if missing.partition(".")[0] == "driftline":
            raise
        package = f'"driftline[{EXTRAS[missing]}]"' if missing in EXTRAS else missing
        raise UserError(f"{kind} '{name}' needs {missing}: pip install {package}") from error


@functools.cache
def _load_plugins(kind: str) -> None:
    for entry in entry_points(group=f"driftline.{kind}"):
        _plug_in(kind, entry)


def _plug_in(kind: str, entry: EntryPoint) -> None:
    """Register a thing of another package; log a warning if it is faulty."""
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


def must_be(kind: str, name: str, thing: object, own: bool) -> None:
    """Refuse a thing that is not of its kind, before it is called.

    A function of an installed package must be annotated to return its kind; one in a user's `own` file need not be.
    """
    inner = thing.func if isinstance(thing, functools.partial) else thing
    if kind == "model" and not own and _package_of(inner) == "torch":
        raise UserError(
            f"model '{name}': some functions of torch run text as code. Use it in a file of your own and name that"
        )
    types = [loaded for path in TYPES[kind] if (loaded := _loaded(path))]
    if kind in MADE_BY_FUNCTIONS and callable(inner) and not isinstance(inner, type):
        fits = own or any(_is_a(base, one) for base in types for one in (inner, _returned(inner)))
    elif kind == "dataset" and not isinstance(inner, type):
        fits = (own and hasattr(inner, "__getitem__")) or any(isinstance(inner, base) for base in types)
    elif kind in ("metric", "model"):
        duck = own and kind == "model" and all(callable(getattr(inner, verb, None)) for verb in ("fit", "predict"))
        fits = duck or any(_is_a(base, inner) for base in types)
    else:
        fits = isinstance(inner, type) and any(_is_a(base, inner) for base in types)
    if not fits:
        function = ", nor a function annotated to return one" if kind in MADE_BY_FUNCTIONS else ""
        raise UserError(f"{kind} '{name}' is not a {' or '.join(TYPES[kind])}{function}")


def _loaded(path: str) -> type | None:
    """Return the type with this path; None if its module was never imported, so nothing can be of that type."""
    module, _, name = path.rpartition(".")
    return getattr(sys.modules.get(module), name, None)


def _package_of(thing: object) -> str:
    """Return the top-level package in which a function or class is defined."""
    return str(getattr(inspect.unwrap(thing) if callable(thing) else thing, "__module__", "")).partition(".")[0]


def _returned(function: Callable[..., object]) -> object:
    """Return the type that a function is annotated to return; None if there is none or it cannot be read."""
    function = inspect.unwrap(function)
    annotated = SimpleNamespace(__annotations__={"return": getattr(function, "__annotations__", {}).get("return")})
    try:
        return typing.get_type_hints(annotated, getattr(function, "__globals__", {}))["return"]
    except (NameError, AttributeError, TypeError):
        return None


def types_of(name: str, thing: Any) -> JsonObject:
    """Return the annotated types of a thing: of its parameters or fields, and of its result."""
    if user_objects.is_object(name):
        return user_objects.types_of(name)
    inner = inspect.unwrap(thing.func if isinstance(thing, functools.partial) else thing)
    try:
        return typing.get_type_hints(inner, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise UserError(f"{name}: cannot read its type annotations: {error}") from error


def _is_a(kind: type, thing: object) -> bool:
    """Return whether a thing is a subclass or an instance of a type; of a protocol, a class with all its members."""
    if getattr(kind, "_is_protocol", False):
        members = {*kind.__annotations__, *(name for name in vars(kind) if not name.startswith("_"))}
        return isinstance(thing, type) and all(hasattr(thing, member) for member in members)
    return issubclass(thing, kind) if isinstance(thing, type) else isinstance(thing, kind)
