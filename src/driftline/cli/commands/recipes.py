"""`driftline recipes`: list the recipes of the package, or print one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import DataFolder
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError

if TYPE_CHECKING:
    from driftline.recipes import Recipe
    from driftline.types import JsonObject

BASIS = {"profile": "forecast", "extrapolation": "rough forecast", "formula": "estimate by a formula"}


def recipes(
    name: Annotated[str | None, typer.Argument(help="The recipe to print. [default: list all]")] = None,
    format: Annotated[str, typer.Option(help="text or json")] = "text",
    data_dir: DataFolder = None,
) -> None:
    """List the recipes for the papers' tables, or print one.

    Each is listed with the paper's table, what is run, the files it needs, where to get them, and its cost. Costs
    are forecasts or estimates, with the machine and date they were made on. `driftline run recipe:NAME` runs one.
    `driftline recipes NAME > mine.yaml` makes a copy to edit.
    """
    from driftline.recipes import PREFIX, describe, matrices, names, path_of

    if format not in ("text", "json"):
        raise UserError(f"--format {format}: give text or json")
    if name is not None and name.removeprefix(PREFIX) in matrices():
        echo(path_of(PREFIX + name.removeprefix(PREFIX)).read_text(encoding="utf-8"), nl=False)
        return
    chosen = names() if name is None else [name.removeprefix(PREFIX)]
    found = [describe(one, data_dir) for one in chosen]
    if format == "json":
        content = [_as_json(recipe) for recipe in found]
        echo(json.dumps(content if name is None else content[0], indent=1, ensure_ascii=False))
    elif name is None:
        echo("\n\n".join("\n  ".join(_summary(recipe)) for recipe in found))
    else:
        echo("".join(f"# {line}\n" for line in _summary(found[0])) + found[0].text, nl=False)


def _summary(recipe: Recipe) -> Iterator[str]:
    """Yield the lines of a recipe in the list."""
    yield f"{recipe.name}: {recipe.table}"
    model = f" with {recipe.model}" if recipe.model else ""
    yield f"{recipe.benchmark} on {recipe.data}{model}, methods: {len(recipe.methods)}, seeds: {recipe.seeds}"
    for (present, source), needs in groupby(recipe.needs, key=lambda need: (need.present, need.source)):
        files = ", ".join(" or ".join(need.files) for need in needs)
        yield f"{'here' if present else 'missing'}: {files} ({source})"
    yield _cost(recipe)


def _cost(recipe: Recipe) -> str:
    from driftline.cli.printing.forecast import format_amount, format_duration

    cost = recipe.cost
    if cost is None:
        return f"cost: `driftline plan recipe:{recipe.name}`"
    hours = f"{format_duration(3600 * cost.core_hours)} on one core of {cost.machine}"
    return f"cost: {cost.runs:,} runs, {format_amount(cost.macs)}MACs, {hours} ({BASIS[cost.basis]} of {cost.date})"


def _as_json(recipe: Recipe) -> JsonObject:
    needs = [need._asdict() for need in recipe.needs]
    cost = recipe.cost._asdict() if recipe.cost else None
    return {**asdict(recipe), "needs": needs, "present": recipe.present, "cost": cost}
