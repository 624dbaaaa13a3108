"""Descriptions of things and of their settings, for help and for the reference page."""

from __future__ import annotations

import json
import types
import typing
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from driftline import registry
from driftline.device import DeviceSettings
from driftline.spec.job import LabelPolicy
from driftline.spec.meanings import meanings, paper
from driftline.spec.search import Search
from driftline.spec.settings import settings_model, thing_of

PARTS: dict[str, type[BaseModel]] = {"reveal": LabelPolicy, "device": DeviceSettings, "selection": Search}
"""Parts of a spec with settings of their own, besides benchmark, data, model and methods."""
WITH_SETTINGS = ("method", "pretraining", "dataset", "model", "label-rule")
LIMITS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


class Setting(NamedTuple):
    """A setting as a user sees it."""

    name: str
    type: str
    default: str
    """As YAML; empty if there is none."""
    meaning: str


class Description(NamedTuple):
    """The help text of a registered thing."""

    kind: str
    name: str
    summary: str
    paper: str
    settings: tuple[Setting, ...]
    """Empty for a kind without settings, and for a thing that takes any."""


def describe(kind: str, name: str) -> Description:
    """Return the description of a registered thing, a user's own or a part of a spec."""
    if kind == "part":
        schema = PARTS[name]
        return Description(kind, name, registry.first_line(schema), "", _settings(schema, meanings(schema)))
    entry = registry.describe(kind, name)
    if entry and (entry.settings is not None or kind not in (*WITH_SETTINGS, "benchmark")):
        known, cited = entry.meanings, entry.paper
    else:
        thing = thing_of(kind, name)
        known = meanings(thing.options if kind == "benchmark" else thing)
        cited = getattr(thing, "paper", None) or paper(thing)
    summary = entry.summary if entry else registry.first_line(thing_of(kind, name))
    return Description(kind, name, summary, cited, _settings(schema_of(kind, name), known))


def schema_of(kind: str, name: str) -> type[BaseModel] | None:
    """Return the settings of a thing as a pydantic model; None if its kind has none or it accepts any."""
    if kind == "part":
        return PARTS[name]
    if kind == "benchmark":
        options: type[BaseModel] = registry.get(kind, name).options
        return options
    return settings_model(kind, name) if kind in WITH_SETTINGS else None


def _settings(schema: type[BaseModel] | None, known: typing.Mapping[str, str]) -> tuple[Setting, ...]:
    fields = schema.model_fields if schema else {}
    return tuple(
        Setting(name, type_text(field.annotation, field.metadata), _as_yaml(field.default), known.get(name, ""))
        for name, field in fields.items()
    )


def type_text(annotation: Any, metadata: typing.Iterable[Any] = ()) -> str:
    """Return a type and its limits as text.

    >>> type_text(int | None), type_text(Literal["a", "b"]), type_text(tuple[float, ...])
    ('int | null', 'a | b', 'list of float')
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        nested = [one for field in arguments[1:] for one in getattr(field, "metadata", [field])]
        return type_text(arguments[0], nested)
    if origin in (typing.Union, types.UnionType):
        limited = {type_text(one, () if one is type(None) else metadata): None for one in arguments}
        return " | ".join(limited)
    if origin is Literal:
        text = " | ".join(map(_as_yaml, arguments))
    elif origin in (list, tuple, set):
        text = f"list of {type_text(arguments[0])}"
    elif annotation in (None, type(None)):
        text = "null"
    else:
        text = "mapping" if origin is dict else getattr(annotation, "__name__", "any").lower()
    limits = [f"{sign} {getattr(one, key)}" for one in metadata for key, sign in LIMITS.items() if hasattr(one, key)]
    return f"{text} {', '.join(limits)}" if limits else text


def _as_yaml(value: object) -> str:
    """Return a default as one would write it in a spec; empty if there is none."""
    if value is PydanticUndefined:
        return ""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)
