"""`--set part.key=value`: assignments on the command line, applied to a spec."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

from driftline import registry
from driftline.errors import UserError, unknown_name
from driftline.spec.describe import PARTS, schema_of
from driftline.spec.settings import listed
from driftline.types import JsonObject

EVERY_METHOD = "*"


def apply_overrides(content: JsonObject, assignments: list[str]) -> JsonObject:
    """Return the mapping with `part.key=value` applied.

    Parts are data, model, reveal, device, selection, the benchmark, the label rules and the methods; `*` is every
    method with that key.
    """
    content = {**content, "methods": [_as_mapping(method) for method in listed(content.get("methods"))]}
    rules = {str(rule.get("name")): rule for rule in _rules(content)}
    if rules:
        content["reveal"] = {**content["reveal"], "rules": list(rules.values())}
    parts = {"data", "model", *PARTS, str(content.get("benchmark"))}
    methods = {str(method.get("name")) for method in content["methods"]}
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        # A file's name has dots too, so the part is the longest known one.
        known = {*parts, *methods, *rules, EVERY_METHOD}
        part = max((p for p in known if target.startswith(f"{p}.")), key=len, default=None)
        if not equals or "." not in target:
            raise UserError(f"--set takes part.key=value, for example ft.lr=1e-3; got '{assignment}'")
        if part is None:
            raise unknown_name("part", target.partition(".")[0], known - {EVERY_METHOD}, f" (in --set {assignment})")
        key = target[len(part) + 1 :].strip()
        _check_place(part, key, content)
        if part == EVERY_METHOD or part in methods:
            for method in _methods_with(part, key, content["methods"]):
                method[key] = _parse_value(text)
        elif part in rules:
            rules[part][key] = _parse_value(text)
        else:
            content[part] = {**_as_mapping(content.get(part) or {}), key: _parse_value(text)}
    return content


def _methods_with(part: str, key: str, methods: list[JsonObject]) -> list[JsonObject]:
    """Return the methods of this name, or all that have this setting."""
    if part != EVERY_METHOD:
        return [method for method in methods if method.get("name") == part]
    keys = {str(method.get("name")): _keys("method", str(method.get("name"))) for method in methods}
    fitting = [method for method in methods if (known := keys[str(method.get("name"))]) is None or key in known]
    if not fitting:
        settings = {setting for known in keys.values() for setting in known or ()}
        raise unknown_name("setting", key, settings, f" (of {', '.join(keys)})")
    return fitting


def _keys(kind: str, name: str) -> set[str] | None:
    """Return the names of a thing's settings; None if it accepts any, only its code knows them, or it is unknown."""
    try:
        schema = schema_of(kind, name)
    except UserError:
        return None
    return None if schema is None else set(schema.model_fields)


def _check_place(part: str, key: str, content: JsonObject) -> None:
    """Refuse a setting that its part lacks and another part has."""
    known = next((_keys(kind, name) for one, kind, name in _things(content) if one == part), None)
    if known is None or key in known:
        return
    if places := [place for place in similar_settings(key, content) if place.endswith(f".{key}")]:
        raise UserError(f"{part} has no setting '{key}'. Did you mean --set {' or --set '.join(places)}?")


def similar_settings(key: str, content: JsonObject) -> list[str]:
    """Return the settings of a spec's parts with this name, or else with the most similar one, as `part.key`.

    Without a model, those of all models count.
    """
    models = [] if content.get("model") else registry.names("model")
    places: dict[str, dict[str, None]] = {}
    for part, kind, name in (*_things(content), *(("model", "model", model) for model in models)):
        for setting in _keys(kind, name) or ():
            places.setdefault(setting, {})[f"{part}.{setting}"] = None
    near = difflib.get_close_matches(key, places, n=1, cutoff=0.8)
    return list(places[near[0]]) if near else []


def _things(content: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of a spec: how `--set` calls it, its kind and its name."""
    yield from ((part, "part", part) for part in PARTS)
    if benchmark := content.get("benchmark"):
        yield str(benchmark), "benchmark", str(benchmark)
    for part, kind in (("data", "dataset"), ("model", "model")):
        if name := _as_mapping(content.get(part)).get("name"):
            yield part, kind, str(name)
    for method in listed(content.get("methods")):
        name = str(_as_mapping(method).get("name"))
        yield name, "method", name
    for rule in _rules(content):
        yield str(rule.get("name")), "label-rule", str(rule.get("name"))


def _rules(content: JsonObject) -> list[JsonObject]:
    """Return the label rules of a spec as mappings."""
    return [_as_mapping(rule) for rule in listed(_as_mapping(content.get("reveal") or {}).get("rules"))]


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
