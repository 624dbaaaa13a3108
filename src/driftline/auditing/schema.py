"""The JSON Schema of audit.json, made from the dataclasses of the result and their docstrings."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from textwrap import dedent
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from driftline.auditing.gate import NAMES
from driftline.auditing.result import FORMAT, AuditResult
from driftline.auditing.summary import Summary
from driftline.types import JsonObject

NUMBER: JsonObject = {"type": ["number", "null"]}  # null: not known
PLAIN: dict[object, JsonObject] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: NUMBER,
    type(None): {"type": "null"},
    np.ndarray: {"type": "array", "items": {"anyOf": [NUMBER, {"type": "array", "items": NUMBER}]}},
    np.generic: {"type": ["number", "string"]},  # a value of the time column
}


def audit_schema() -> JsonObject:
    """Return the schema of audit.json."""
    parts: dict[str, JsonObject] = {}
    result = _object(AuditResult, parts)
    first: JsonObject = {
        "format": {"const": FORMAT, "description": "Raised when this layout changes."},
        "headline": {"type": "string", "description": "The recommendation in a few words."},
        "summary": _schema(Summary, parts),
        "answers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "By question."},
        "gate_values": {
            "type": "object",
            "properties": dict.fromkeys(sorted(NAMES), NUMBER),
            "additionalProperties": False,
            "description": "The numbers that --fail-if can name.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "audit.json of driftline",
        **result,
        "properties": first | result["properties"],
        "required": [*first, *result["required"]],
        "$defs": dict(sorted(parts.items())),
    }


def _schema(kind: Any, parts: dict[str, JsonObject]) -> JsonObject:
    """Return the schema of a type; dataclasses are added to `parts` and referred to."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in parts:
            parts[kind.__name__] = {}  # a dataclass may contain itself
            parts[kind.__name__] = _object(kind, parts)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kind in PLAIN:
        return PLAIN[kind]
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(one, parts) for one in inner]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(inner[1], parts)}
    if origin in (tuple, list):
        if (len(inner) == 2 and inner[1] is Ellipsis) or origin is list:
            return {"type": "array", "items": _schema(inner[0], parts)}
        size = len(inner)
        items = [_schema(one, parts) for one in inner]
        return {"type": "array", "prefixItems": items, "minItems": size, "maxItems": size}
    return {}  # any value


def _object(kind: type, parts: dict[str, JsonObject]) -> JsonObject:
    hints, texts = get_type_hints(kind), _field_texts(kind)
    properties = {}
    for field in fields(kind):
        if callable(getattr(field, "default", None)) or _is_function(hints[field.name]):
            continue
        described = {"description": texts[field.name]} if field.name in texts else {}
        properties[field.name] = {**_schema(hints[field.name], parts), **described}
    about = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    return {
        "type": "object",
        "description": " ".join(about.split()),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _is_function(hint: Any) -> bool:
    return getattr(get_origin(hint), "__name__", "") == "Callable"


@cache
def _field_texts(kind: type) -> dict[str, str]:
    """Return the docstrings below the fields of a dataclass and of its bases."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if is_dataclass(base):
            texts |= dict(_texts_below(base))
    return texts


def _texts_below(kind: type) -> Iterator[tuple[str, str]]:
    body = ast.parse(dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            value = below.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield field.target.id, " ".join(value.value.split())
