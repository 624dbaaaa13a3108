"""The command that computes a finished run, from its card."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from functools import lru_cache

from driftline import registry
from driftline.record.card import Card, Component
from driftline.record.run import Run
from driftline.spec.job import LabelPolicy
from driftline.types import JsonObject

PYTHON = "from Python"


def run_command(run: Run) -> str:
    """Return the command that computes a run and those of smaller seeds; settings at their defaults are left out.

    A run of Python objects has none.
    """
    before, after = _around_seeds(run.common_text)
    return f"{before}{run.seed + 1}{after}" if after is not None else before


@lru_cache(maxsize=4096)
def _around_seeds(common: str) -> tuple[str, str | None]:
    """Return the command before and after the number of seeds, from what the cards of all seeds have in common."""
    card = Card.model_validate_json(common)
    run = card.run
    if any(part.display_name != part.name for part in (run.data, run.model, run.method)):
        return PYTHON, None
    first = ["driftline", "run", run.benchmark, "--data", run.data.name, "--model", run.model.name]
    first += ["--methods", run.method.name, "--seeds"]
    words = []
    if run.budget_macs is not None:
        words += ["--budget-macs", str(run.budget_macs)]
    words += ["--precision", str(run.device["precision"])] if "precision" in run.device else []
    for assignment in _assignments(card):
        words += ["--set", assignment]
    selection = "  # and the selection of its spec" if run.search else ""
    return f"{shlex.join(first)} ", " ".join(["", *map(shlex.quote, words)]) + selection


def _assignments(card: Card) -> Iterator[str]:
    run, label = card.run, card.label
    parts = {
        "data": _changed("dataset", run.data),
        "model": _changed("model", run.model),
        run.benchmark: _without(run.options, _option_defaults(run.benchmark)),
        run.method.name: {
            **{key: value for key, value in run.method.settings.items() if f"{key}={value}" in label},
            **({"lora": run.lora} if run.lora else {}),
        },
        "device": {key: value for key, value in run.device.items() if key != "precision"},
        "reveal": _without(run.reveal, LabelPolicy().model_dump()),
    }
    for part, settings in parts.items():
        for key, value in settings.items():
            yield f"{part}.{key}={value if isinstance(value, str) else json.dumps(value)}"


def _changed(kind: str, component: Component) -> JsonObject:
    """Return the settings that differ from the defaults; all, if only a user's code knows the defaults."""
    entry = registry.describe(kind, component.name)
    known = entry.settings if entry and entry.settings is not None else {}
    return _without(component.settings, {key: field[1] for key, field in known.items() if len(field) > 1})


@lru_cache
def _option_defaults(benchmark: str) -> JsonObject:
    if registry.describe("benchmark", benchmark) is None:
        return {}
    fields = registry.get("benchmark", benchmark).options.model_fields
    return {name: field.get_default(call_default_factory=True) for name, field in fields.items()}


def _without(settings: JsonObject, defaults: JsonObject) -> JsonObject:
    plain = json.loads(json.dumps(defaults, default=str))  # as a card has them
    return {key: value for key, value in settings.items() if key not in plain or plain[key] != value}
