"""`driftline audit`: a user's own table and model, the answers on the terminal, the report beside."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.places import file_name
from driftline.cli.terminal import echo

if TYPE_CHECKING:
    from driftline.auditing import Audit


def audit(
    file: Annotated[str, typer.Argument(help="A .csv, .csv.gz or .parquet file.", metavar="FILE")],
    time: Annotated[str, typer.Option(help="The column that says when.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    model: Annotated[str | None, typer.Option(help="A model's name, or module:factory. [default: boosting]")] = None,
    predictions: Annotated[
        str | None, typer.Option(help="A column of logged predictions to audit in place of a model.")
    ] = None,
    period: Annotated[str, typer.Option(help='day, week, month, quarter, year, "500 rows" or auto.')] = "auto",
    features: Annotated[str | None, typer.Option(help="Columns, with commas between. [default: all others]")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="What a column holds: NAME=number, category, text, date or ignore. [default: guessed]"),
    ] = None,
    task: Annotated[str, typer.Option(help="classes, number or auto.")] = "auto",
    delay: Annotated[int, typer.Option(help="How many periods late labels come.", min=0)] = 0,
    rows: Annotated[int, typer.Option(help="Rows per period that are looked at, at most.", min=50)] = 10_000,
    fail_if: Annotated[list[str] | None, typer.Option(help='Exit with 1 if this holds, e.g. "tas<0.9".')] = None,
    output: Annotated[Path, typer.Option("-o", "--output", callback=file_name, help="The HTML file to write.")] = Path(
        "audit.html"
    ),
    json: Annotated[
        Path | None,
        typer.Option(callback=file_name, help="The JSON file for all numbers. [default: beside the HTML file]"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Worker processes. Results do not depend on it.", min=1)] = 2,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answers only.")] = False,
) -> None:
    """How long does a model of your table stay good, and when must it be retrained?"""
    from driftline.auditing import audit as run
    from driftline.auditing import gate
    from driftline.auditing.setting import Limits
    from driftline.cli.progress import Pieces
    from driftline.errors import UserError

    if model is not None and predictions is not None:
        raise UserError("give a model to train with --model, or logged predictions with --predictions, not both")
    for condition in fail_if or []:
        gate.check(condition)
    with Pieces(quiet) as pieces:
        found = run(
            file,
            time=time,
            target=target,
            model=model or "boosting",
            prediction=predictions,
            period=period,
            features=[name.strip() for name in features.split(",")] if features else None,
            columns=_kinds(column or []),
            task=task,
            delay=delay,
            limits=Limits(rows=rows),
            jobs=jobs,
            told=pieces.told,
        )
    found.numbers["provenance"]["command"] = shlex.join(["driftline", *sys.argv[1:]])
    json = json or output.with_suffix(".json")
    found.write(output, json)
    echo(str(found))
    if not quiet:
        echo(f"\npage with charts: {output}\nall numbers: {json}")
    _judge(found, fail_if or [], quiet)


def _kinds(given: list[str]) -> dict[str, str]:
    """The kinds of columns, from NAME=KIND; a name may have an equals sign in it."""
    from driftline.errors import UserError

    for one in given:
        if "=" not in one:
            raise UserError(f"--column takes NAME=KIND, for example price=number; got '{one}'")
    return {name: kind for name, _, kind in (one.rpartition("=") for one in given)}


def _judge(found: Audit, conditions: list[str], quiet: bool) -> None:
    """Say of each condition whether it holds and by which numbers; leave with 1 if one does."""
    held = [condition for condition in conditions if found.fails(condition)]
    for condition in conditions:
        if condition in held:
            echo(f"gate failed: {condition} holds, for {found.told(condition)}", err=True)
        elif not quiet:
            echo(f"gate passed: {condition} does not hold, for {found.told(condition)}")
    if held:
        raise typer.Exit(1)
