"""`driftline audit`: print the answers about a user's table and model, and write the page and the numbers."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import HtmlFile, check_output
from driftline.cli.printing.terminal import echo

if TYPE_CHECKING:
    from driftline.auditing import AuditResult


def audit(
    file: Annotated[str, typer.Argument(help="A .csv, .csv.gz or .parquet file.", metavar="FILE")],
    time: Annotated[str, typer.Option(help="The time column.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    model: Annotated[
        str | None, typer.Option(help="Name of a model, or module:factory. [default: hist-gradient-boosting]")
    ] = None,
    predictions: Annotated[
        str | None, typer.Option(help="A column of logged predictions to audit instead of a model.")
    ] = None,
    period: Annotated[str, typer.Option(help='day, week, month, quarter, year, "500 rows" or auto.')] = "auto",
    features: Annotated[
        str | None, typer.Option(help="Feature columns, separated by commas. [default: all others]")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Kind of a column: NAME=number, category, text, date or ignore. [default: guessed]"),
    ] = None,
    task: Annotated[str, typer.Option(help="classes, number or auto.")] = "auto",
    delay: Annotated[int, typer.Option(help="Number of periods by which labels are late.", min=0)] = 0,
    rows: Annotated[int, typer.Option(help="Maximum number of rows per period.", min=50)] = 10_000,
    fail_if: Annotated[list[str] | None, typer.Option(help='Exit with 1 if this holds, e.g. "tas<0.9".')] = None,
    output: HtmlFile = Path("audit.html"),
    json: Annotated[
        Path | None,
        typer.Option(callback=check_output, help="The JSON file for all numbers. [default: beside the HTML file]"),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Number of worker processes. Results are identical for any value.", min=1)
    ] = 2,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answers only.")] = False,
) -> None:
    """Measure how long a model of your table stays good, and when to retrain it."""
    from driftline.auditing import audit as run
    from driftline.auditing import gate
    from driftline.auditing.table import Limits
    from driftline.cli.progress import TaskProgress
    from driftline.errors import UserError

    if model is not None and predictions is not None:
        raise UserError("give a model to train with --model, or logged predictions with --predictions, not both")
    for condition in fail_if or []:
        gate.check(condition)
    with TaskProgress(quiet) as progress:
        result = run(
            file,
            time=time,
            target=target,
            model=model or "hist-gradient-boosting",
            prediction=predictions,
            period=period,
            features=[name.strip() for name in features.split(",")] if features else None,
            columns=_kinds(column or []),
            task=task,
            delay=delay,
            limits=Limits(rows=rows),
            jobs=jobs,
            on_progress=progress.show,
        )
    command = shlex.join(["driftline", *sys.argv[1:]])
    result = replace(result, provenance=replace(result.provenance, command=command))
    json = json or output.with_suffix(".json")
    result.write(output, json)
    echo(str(result))
    if not quiet:
        echo(f"\npage with charts: {output}\nall numbers: {json}")
    _check_gate(result, fail_if or [], quiet)


def _kinds(given: list[str]) -> dict[str, str]:
    """Return the kinds of columns from NAME=KIND; a name may contain an equals sign."""
    from driftline.errors import UserError

    for text in given:
        if "=" not in text:
            raise UserError(f"--column takes NAME=KIND, for example price=number; got '{text}'")
    return {name: kind for name, _, kind in (text.rpartition("=") for text in given)}


def _check_gate(result: AuditResult, conditions: list[str], quiet: bool) -> None:
    """Print whether each condition holds, and exit with 1 if one does."""
    failed = [condition for condition in conditions if result.fails(condition)]
    for condition in conditions:
        if condition in failed:
            echo(f"gate failed: {condition} ({result.describe(condition)})", err=True)
        elif not quiet:
            echo(f"gate passed: not {condition} ({result.describe(condition)})")
    if failed:
        raise typer.Exit(1)
