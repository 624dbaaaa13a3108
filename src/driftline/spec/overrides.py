"""`--set part.key=value`: assignments on the command line, applied to a spec."""

from __future__ import annotations

import json
from typing import Any

from driftline.errors import UserError, unknown_name
from driftline.spec.settings import listed
from driftline.types import JsonObject


def apply_overrides(content: JsonObject, assignments: list[str]) -> JsonObject:
    """Return the mapping with `part.key=value` applied.

    Parts are data, model, reveal, device, selection, the benchmark and the methods.
    """
    content = {**content, "methods": [_as_mapping(method) for method in listed(content.get("methods"))]}
    parts = {"reveal", "data", "model", "device", "selection", str(content.get("benchmark"))}
    methods = {str(method.get("name")) for method in content["methods"]}
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        # A file's name has dots too, so the part is the longest known one.
        part = max((p for p in parts | methods if target.startswith(f"{p}.")), key=len, default=None)
        if not equals or "." not in target:
            raise UserError(f"--set takes part.key=value, for example ft.lr=1e-3; got '{assignment}'")
        if part is None:
            raise unknown_name("part", target.partition(".")[0], parts | methods, f" (in --set {assignment})")
        key = target[len(part) + 1 :].strip()
        if part in methods:
            for method in content["methods"]:
                if method.get("name") == part:
                    method[key] = _parse_value(text)
        else:
            content[part] = {**_as_mapping(content.get(part) or {}), key: _parse_value(text)}
    return content


def _parse_value(text: str) -> Any:
    """Return a JSON value, or else the text itself: 1e-3 is a number and `on` is a word.

    >>> _parse_value("[a, b.csv, 3]"), _parse_value("[0-9].csv")
    (['a', 'b.csv', 3], '[0-9].csv')
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return text
    if any(mark in text[1:-1] for mark in '[]{}"'):
        raise UserError(f'{text} is not JSON: put texts in double quotes, as in \'[["a", 1], ["b", 2]]\'')
    return [_parse_value(part) for part in text[1:-1].split(",")]


def _as_mapping(given: object) -> JsonObject:
    return dict(given) if isinstance(given, dict) else {"name": given}
