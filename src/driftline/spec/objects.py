"""Objects in a spec: each becomes a name and settings before the spec is parsed."""

from __future__ import annotations

import functools
import inspect
import re
import uuid
from collections.abc import Mapping
from typing import Any

from driftline import registry
from driftline.data import Dataset
from driftline.data.adapters import as_dataset
from driftline.errors import UserError
from driftline.io import user_objects
from driftline.io.object_hash import CannotHash, ObjectHasher
from driftline.io.user_objects import UserObject
from driftline.learners.base import Learner
from driftline.models.user_models import factory_of
from driftline.spec.settings import Choice, listed
from driftline.types import JsonObject, Settings

KINDS = {"data": "dataset", "model": "model"}


def name_objects(content: Settings, cache: bool) -> tuple[JsonObject, tuple[UserObject, ...]]:
    """Return the content of a spec with names in place of objects, and the objects, known as long as they are kept.

    `cache`: whether results are kept, for which an object must have a hash.
    """
    objects: list[UserObject] = []

    def named(kind: str, given: Any) -> Any:
        if given is None or isinstance(given, str | Choice):
            return given
        if isinstance(given, Mapping):
            name = named(kind, given.get("name"))
            return {**given, **name} if isinstance(name, dict) else given
        thing, settings = _without_settings(given) if kind == "method" else (given, {})
        name = registry.name_of(kind, thing)
        if name is None:
            objects.append(user_objects.add(_user_object(kind, thing, cache)))
            name = objects[-1].name
        return {"name": name, **settings}

    names: JsonObject = {part: named(kind, content[part]) for part, kind in KINDS.items() if part in content}
    if "methods" in content:
        names["methods"] = [named("method", method) for method in listed(content["methods"])]
    return {**content, **names}, tuple(objects)


def _without_settings(method: Any) -> tuple[Any, JsonObject]:
    """Return the class of a method that is given as an instance or a partial, and its settings."""
    if isinstance(method, functools.partial):
        return method.func, dict(method.keywords)
    if not isinstance(method, Learner):
        return method, {}
    cls, settings = type(method), {}
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UserError(
                f"method '{cls.__name__}' takes any setting (**{parameter.name}), and an instance does not say "
                f"""which it has: pass {{"name": {cls.__name__}, ...}} with settings, or make it a dataclass"""
            )
        if not hasattr(method, parameter.name):
            raise UserError(
                f"method '{cls.__name__}' does not store its setting {parameter.name}: let __init__ set "
                f"self.{parameter.name}, or make {cls.__name__} a dataclass"
            )
        value = getattr(method, parameter.name)
        if not _equal(value, parameter.default):
            settings[parameter.name] = value
    return cls, settings


def _equal(one: object, other: object) -> bool:
    """Return whether two values are equal; arrays are never."""
    try:
        return bool(one == other)
    except ValueError:
        return False


def _user_object(kind: str, thing: object, cache: bool) -> UserObject:
    """Return an object with its name; refuse one that is not of its kind, or that a key could not cover."""
    name = _class_name(thing)
    if kind == "dataset" and hasattr(thing, "to_pandas"):
        thing = thing.to_pandas()
    elif kind == "dataset" and not callable(thing) and not hasattr(thing, "iloc"):
        thing = as_dataset(name, thing)
        return UserObject(kind, f"{name}@{thing.fingerprint}", thing, {}, frozenset())
    registry.must_be(kind, name, thing, own=True)
    hasher = ObjectHasher()
    try:
        content = hasher.hash((kind, thing))
    except (CannotHash, RecursionError) as error:
        if cache:
            raise UserError(
                f"{kind} '{name}' cannot be recognized in a later run: {error}. Define it in a file or a notebook "
                "cell, or pass cache=False to keep no results"
            ) from error
        content = uuid.uuid4().hex[:16]
    return UserObject(kind, f"{name}@{content}", thing, _types(kind, name, thing), frozenset(hasher.own_modules))


def _class_name(thing: object) -> str:
    """Return the name of a class, function or dataset, or of the class of another object."""
    if isinstance(thing, functools.partial):
        return _class_name(thing.func)
    if isinstance(thing, tuple | list):
        return "arrays"
    name = thing.name if isinstance(thing, Dataset) else getattr(thing, "__name__", type(thing).__name__)
    return re.sub(r"\W+", "_", name).strip("_")


def _types(kind: str, name: str, thing: object) -> JsonObject:
    if kind == "model":
        return inspect.get_annotations(factory_of(name, thing))
    return registry.types_of(name, thing) if callable(thing) else {}
