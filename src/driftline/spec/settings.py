"""Settings of registered things: their schema, defaults and display."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Mapping
from types import UnionType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic_core import PydanticSerializationError

from driftline import data, models, registry
from driftline.errors import UserError, unknown_name
from driftline.io import user_objects
from driftline.types import JsonObject, Settings

# A class may be called 1 and a column 2024: such names come as numbers from a command line.
SETTINGS_CONFIG = ConfigDict(extra="forbid", protected_namespaces=(), coerce_numbers_to_str=True)

OF_CLASSES = ("method", "pretraining", "label-rule")
"""Kinds whose settings are the fields of a dataclass; those of other kinds are keyword-only parameters."""


class FrozenModel(BaseModel):
    """An immutable model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(FrozenModel):
    """A registered thing by name, with the settings given for it."""

    name: str = Field(min_length=1)
    settings: JsonObject = {}

    @model_validator(mode="before")
    @classmethod
    def _expand_short_forms(cls, given: object) -> object:
        """Accept `ft` and `{name: ft, lr: 0.001}`."""
        if isinstance(given, str):
            return {"name": given}
        if isinstance(given, dict) and "settings" not in given:
            own = {key: value for key, value in given.items() if key in cls.model_fields}
            return {"name": None, **own, "settings": {k: v for k, v in given.items() if k not in own}}
        return given

    @property
    def display_name(self) -> str:
        """The name, without the hash of a Python object."""
        return user_objects.display_name(self.name)

    def short(self) -> Any:
        """Return the form that a user would write."""
        more = {**self.model_dump(exclude={"name", "settings"}, exclude_defaults=True), **self.settings}
        return {"name": self.name, **more} if more else self.name


class LoRA(FrozenModel):
    """Low-rank adapters: a method trains them and the head of a frozen network (`training.lora`)."""

    rank: int = Field(default=8, ge=1)
    """Rank of the change of a layer's weights."""
    alpha: float = Field(default=8.0, gt=0, allow_inf_nan=False)
    """The change is multiplied by alpha / rank."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, given: object) -> object:
        """Accept a rank alone."""
        if isinstance(given, int) and not isinstance(given, bool):
            return {"rank": given}
        if isinstance(given, Mapping | LoRA):
            return given
        raise UserError(f"lora={given}: give a rank, such as 8, or {{rank: 8, alpha: 8}}")

    def __str__(self) -> str:
        return str(self.rank) if self.alpha == LoRA().alpha else json.dumps(self.model_dump())


class MethodChoice(Choice):
    """A method with its settings; its label and its group, which tables and figures show, are not part of a key."""

    lora: LoRA | None = None
    """Train adapters and the head instead of all weights: a rank, or a mapping of the settings."""
    label: str = ""
    """By default, the method's name."""
    group: str = ""
    """The heading of its rows in a table."""


def listed(given: object) -> list[Any]:
    """Return a list from a list, a single value or names separated by commas.

    >>> listed("er, ncm"), listed(None)
    (['er', 'ncm'], [])
    """
    if isinstance(given, str):
        return [name.strip() for name in given.split(",") if name.strip()]
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]


def validate(model: type[Any], content: object, where: str, keys: list[str] | None = None) -> Any:
    """Return a pydantic model of a mapping, or raise an error that names the nearest valid key."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in _without_union(model, first["loc"]))
        if first["loc"][-1:] == ("name",) and first["input"] is None:
            raise UserError(f"{where}: '{path.removesuffix('.name')}' has settings but no name: give both") from None
        if first["type"] in ("too_short", "missing"):
            raise UserError(f"{where}: '{path}' is empty") from None
        if first["type"] == "extra_forbidden":
            raise unknown_name("setting", path, _known_keys(model, first["loc"], keys), f" (in {where})") from None
        raise UserError(
            f"{where}: '{path}' {first['msg'][0].lower()}{first['msg'][1:]}; got {first['input']!r}"
        ) from None


def _without_union(model: type[BaseModel], location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return a place in a model without the name that pydantic gives to a type of a union."""
    field = model.model_fields.get(str(location[0])) if location else None
    types = [kind for kind in typing.get_args(field.annotation) if kind is not type(None)] if field else []
    union = field and typing.get_origin(field.annotation) in (typing.Union, UnionType) and len(types) > 1
    return (location[0], *location[2:]) if union else location


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...], keys: list[str] | None) -> list[str]:
    """Return the keys that are valid at a place of a model: those of the part, if it is inside one."""
    part = model.model_fields.get(str(location[0])) if len(location) > 1 else None
    fields = getattr(part.annotation, "model_fields", None) if part else None
    return [f"{location[0]}.{name}" for name in fields] if fields else keys or list(model.model_fields)


def settings_model(kind: str, name: str) -> type[BaseModel] | None:
    """Return the settings of a registered thing as a pydantic model; None if it accepts any setting."""
    entry = registry.describe(kind, name)
    if entry and entry.settings is not None:
        known: JsonObject | None = {key: (*field, ...)[:2] for key, field in entry.settings.items()}
    else:
        known = settings_of(kind, name)
    return None if known is None else create_model(name, __config__=SETTINGS_CONFIG, **known)


def settings_of(kind: str, name: str) -> JsonObject | None:
    """Return the type and default of each setting, `...` for one without a default; None if it takes anything."""
    thing = thing_of(kind, name)
    fields: JsonObject = {}
    types = registry.types_of(name, thing)
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            return None
        if kind in OF_CLASSES or parameter.kind is parameter.KEYWORD_ONLY:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (types.get(parameter.name, Any), default)
    return fields


def thing_of(kind: str, name: str) -> Any:
    """Return the thing of a name, or the function that makes it."""
    factories = {"model": models.factory, "dataset": data.factory}
    return factories[kind](name) if kind in factories else registry.get(kind, name)


def with_defaults(kind: str, choice: Choice) -> Choice:
    """Return the choice with every default filled in and every value validated."""
    schema = settings_model(kind, choice.name)
    if schema is None:
        return choice
    lacking = [name for name, field in schema.model_fields.items() if field.is_required()]
    lacking = [name for name in lacking if name not in choice.settings]
    shown = choice.display_name
    if lacking:
        part = {"dataset": "data", "model": "model"}.get(kind, choice.name)
        ways = " ".join(f"--set {part}.{name}=..." for name in lacking)
        if shown != choice.name:  # a Python object
            ways = f"""{{"name": {shown}, {", ".join(f'"{name}": ...' for name in lacking)}}}"""
            ways = f"methods=[{ways}]" if kind == "method" else f"{part}={ways}"
        raise UserError(f"{kind} '{shown}' needs {', '.join(lacking)}: {ways}")
    return Choice(name=choice.name, settings=_plain(schema, choice.settings, shown))


def display_name(method: Choice, kind: str = "method") -> str:
    """Return the name of a method, or of another kind of thing, with the settings that differ from its defaults."""
    schema, name, changed = settings_model(kind, method.name), method.display_name, JsonObject()
    if schema is not None and method.settings:
        settings = _plain(schema, method.settings, name)
        required = {key for key, field in schema.model_fields.items() if field.is_required()}
        defaults = _plain(schema, {key: method.settings[key] for key in required}, name)
        changed = {key: value for key, value in settings.items() if key in required or value != defaults[key]}
    if isinstance(method, MethodChoice) and method.lora is not None:
        changed["lora"] = method.lora
    return f"{name}({format_settings(changed)})" if changed else name


def _plain(schema: type[BaseModel], settings: Settings, name: str) -> JsonObject:
    """Return validated settings as plain data, which a key, a card and a YAML file can hold."""
    try:
        plain: JsonObject = validate(schema, settings, name).model_dump(mode="json")
    except PydanticSerializationError as error:
        raise UserError(
            f"{name} has a setting that is not plain data ({error}): a setting is a number, a text, a list or a "
            "mapping. Anything else can be an attribute of the class"
        ) from None
    return plain


def format_settings(settings: JsonObject) -> str:
    """Return settings as one line of text."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())
