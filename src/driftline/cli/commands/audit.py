"""`driftline audit`: print the answers about a user's table and model, and write the page and the numbers."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import check_output
from driftline.cli.printing.terminal import echo
from driftline.errors import MissingExtra, UserError

if TYPE_CHECKING:
    from driftline.auditing import AuditResult


File = Annotated[str, typer.Argument(help="A .csv, .csv.gz or .parquet file.", metavar="FILE")]
Time = Annotated[str, typer.Option(help="The time column.")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
Model = Annotated[
    str | None, typer.Option(help="Name of a model, or module:factory. [default: hist-gradient-boosting]")
]
Predictions = Annotated[str | None, typer.Option(help="A column of logged predictions to audit instead of a model.")]
Period = Annotated[str, typer.Option(help='day, week, month, quarter, year, "500 rows" or auto.')]
Features = Annotated[str | None, typer.Option(help="Feature columns, separated by commas. [default: all others]")]
Columns = Annotated[
    list[str] | None,
    typer.Option(help="Kind of a column: NAME=number, category, text, date or ignore. [default: guessed]"),
]
TaskName = Annotated[str, typer.Option(help="classes, number or auto.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        help="accuracy, balanced, f1, auc, average-precision, log-loss, brier, rmse, mae, r2 or module:function; the "
        "first one decides. [default: by task and balance]"
    ),
]
TrainUntil = Annotated[str | None, typer.Option(help="Last time of the rows that train the deployed model.")]
Deployed = Annotated[
    int | None, typer.Option(help="Number of periods that train the deployed model. [default: 3]", min=1)
]
CostError = Annotated[
    float | None, typer.Option(help="Cost of a wrong answer, or of one unit of absolute error.", min=0)
]
CostRetrain = Annotated[float | None, typer.Option(help="Cost of a retraining.", min=0)]
Delay = Annotated[str, typer.Option(help="Number of periods by which labels are late, or a time such as 60d.")]
LabelTime = Annotated[
    str | None, typer.Option(help="The column of the times at which labels became known.", metavar="COLUMN")
]
Rows = Annotated[int, typer.Option(help="Maximum number of rows per period.", min=50)]
Conditions = Annotated[list[str] | None, typer.Option(help='Exit with 1 if this holds, e.g. "tas<0.9".')]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", callback=check_output, help="The HTML file to write. [default: audit.html]"),
]
JsonFile = Annotated[
    Path | None,
    typer.Option(callback=check_output, help="The JSON file for all numbers. [default: beside the HTML file]"),
]
Processes = Annotated[int, typer.Option(help="Number of worker processes. Results are identical for any value.", min=1)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the answers only.")]


def audit(
    file: File,
    time: Time,
    target: Target,
    model: Model = None,
    predictions: Predictions = None,
    period: Period = "auto",
    features: Features = None,
    column: Columns = None,
    task: TaskName = "auto",
    metric: Metrics = None,
    train_until: TrainUntil = None,
    deployed: Deployed = None,
    cost_error: CostError = None,
    cost_retrain: CostRetrain = None,
    delay: Delay = "0",
    label_time: LabelTime = None,
    rows: Rows = 10_000,
    fail_if: Conditions = None,
    output: Output = None,
    json: JsonFile = None,
    jobs: Processes = 2,
    quiet: Quiet = False,
) -> None:
    """Measure whether a model of your table ages, since when, and when to retrain it."""
    from driftline import auditing
    from driftline.cli.progress import TaskProgress

    _check_arguments(model, predictions, fail_if or [])
    if output:
        import_module("driftline.report.figures")  # fails now, not after the audit, if figures cannot be drawn
    with TaskProgress(quiet) as progress:
        result = auditing.audit(
            file,
            time=time,
            target=target,
            model=model or "hist-gradient-boosting",
            prediction=predictions,
            period=period,
            features=[name.strip() for name in features.split(",")] if features else None,
            columns=_kinds(column or []),
            task=task,
            metric=metric or (),
            train_until=train_until,
            deployed=deployed,
            cost_error=cost_error,
            cost_retrain=cost_retrain,
            delay=delay,
            label_time=label_time,
            limits=auditing.Limits(rows=rows),
            jobs=jobs,
            on_progress=progress.show,
        )
    page = output or Path("audit.html")
    _report(result, page, json or page.with_suffix(".json"), fail_if or [], quiet)


def _check_arguments(model: str | None, predictions: str | None, conditions: list[str]) -> None:
    """Refuse arguments that cannot be used before any work is done."""
    from driftline.auditing import gate

    if model is not None and predictions is not None:
        raise UserError("give a model to train with --model, or logged predictions with --predictions, not both")
    for condition in conditions:
        gate.check(condition)


def _kinds(columns: list[str]) -> dict[str, str]:
    """Return the kinds of columns from NAME=KIND; a name may contain an equals sign."""
    for text in columns:
        if "=" not in text:
            raise UserError(f"--column takes NAME=KIND, for example price=number; got '{text}'")
    return {name: kind for name, _, kind in (text.rpartition("=") for text in columns)}


def _report(result: AuditResult, output: Path, json: Path, conditions: list[str], quiet: bool) -> None:
    """Write the page and the numbers, print the answers, and exit with 1 if a condition holds."""
    command = shlex.join(["driftline", *sys.argv[1:]])
    echo(f"{result.headline}\n\n{result}")  # first, so that it is shown even if the page cannot be written
    result = replace(result, provenance=replace(result.provenance, command=command))
    result.write(json=json)
    try:
        result.write(output)
        page = f"page with charts: {output}"
    except MissingExtra as error:
        page = f"no page with charts: {error}"
    if not quiet:
        echo(f"\n{page}\nall numbers: {json}")
    failed = [condition for condition in conditions if result.fails(condition)]
    for condition in conditions:
        if condition in failed:
            echo(f"gate failed: {condition} ({result.describe(condition)})", err=True)
        elif not quiet:
            echo(f"gate passed: not {condition} ({result.describe(condition)})")
    if failed:
        raise typer.Exit(1)
