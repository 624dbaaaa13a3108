"""`driftline monitor`: fit a monitor of a deployed model once, then check each new batch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.commands.audit import File
from driftline.cli.options import check_output
from driftline.cli.printing.terminal import echo
from driftline.errors import MissingExtra

app = typer.Typer(no_args_is_help=True, help="Watch a deployed model: fit once, then check each new batch.")

Time = Annotated[str, typer.Option(help="The time column.")]
Target = Annotated[str, typer.Option(help="The column to predict.")]
Features = Annotated[str | None, typer.Option(help="Feature columns, separated by commas. [default: all others]")]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="Kind of a column: number, category, text, date or ignore.", metavar="NAME=KIND"),
]
TaskName = Annotated[str, typer.Option(help="classes, number or auto.")]
MetricName = Annotated[str | None, typer.Option(help="A metric of driftline audit. [default: by task and balance]")]
WatchFile = Annotated[
    Path, typer.Option("-o", "--output", callback=check_output, help="The watch file to write: all that is remembered.")
]
Existing = Annotated[Path, typer.Option("--with", help="The watch file, which is updated.")]
Page = Annotated[
    Path | None,
    typer.Option("-o", "--output", callback=check_output, help="The HTML file. [default: beside the watch file]"),
]
Id = Annotated[
    str | None, typer.Option(help="The column by which labels that come later find their rows.", metavar="COLUMN")
]
ModelName = Annotated[
    str, typer.Option(help="Name of a model, or module:factory; with --predictions, the model of challengers.")
]
Predictions = Annotated[
    str | None, typer.Option(help="A column of logged predictions to watch instead of a model.", metavar="COLUMN")
]
Probability = Annotated[
    list[str] | None,
    typer.Option(help="A column of logged class probabilities; several classes: one each.", metavar="COLUMN[=CLASS]"),
]
LabelTime = Annotated[
    str | None, typer.Option(help="The column of the times at which labels became known.", metavar="COLUMN")
]
Delay = Annotated[str | None, typer.Option(help="How long after their rows labels are known, such as 60d.")]
Sep = Annotated[str | None, typer.Option(help="Separator of columns in CSV files. [default: recognized]")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of CSV files. [default: recognized]")]
Decimal = Annotated[str | None, typer.Option(help="Decimal sign in CSV files. [default: recognized]")]
DateFormat = Annotated[str | None, typer.Option(help="How times are written, as in an audit. [default: recognized]")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print alarms only.")]


@app.command()
def fit(
    reference: File,
    time: Time,
    target: Target,
    output: WatchFile = Path("watch.json"),
    model: ModelName = "hist-gradient-boosting",
    predictions: Predictions = None,
    probability: Probability = None,
    id: Id = None,
    features: Features = None,
    columns: Columns = None,
    task: TaskName = "auto",
    metric: MetricName = None,
    label_time: LabelTime = None,
    delay: Delay = None,
    sep: Sep = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    date_format: DateFormat = None,
    quiet: Quiet = False,
) -> None:
    """Fit a monitor on a reference: rows with labels on which the deployed model was trained."""
    monitoring = import_module("driftline.monitoring")
    monitor = monitoring.Monitor.fit(
        reference,
        time=time,
        target=target,
        id=id,
        model=model,
        predictions=predictions,
        probability=probability or (),
        features=features,
        columns=columns,
        task=task,
        metric=metric,
        label_time=label_time,
        delay=delay,
        sep=sep,
        encoding=encoding,
        decimal=decimal,
        date_format=date_format,
    )
    monitor.save(output)
    if not quiet:
        echo(f"{monitor}\nwatch file: {output}\nnext: driftline monitor check BATCH --with {output}")


@app.command()
def check(batch: File, watch: Existing, output: Page = None, quiet: Quiet = False) -> None:
    """Check a batch: new rows with or without labels, or labels of earlier rows with their ids.

    Exits with 1 if an alarm was raised, and with 2 if the input cannot be used.
    """
    monitoring = import_module("driftline.monitoring")
    with monitoring.locked(watch):
        monitor = monitoring.Monitor.load(watch)
        result = monitor.check(batch)
        text = result.describe(monitor.metric)
        if not quiet:
            echo(text)
        if not result.seen_before:
            monitor.save(watch)
        page = output or watch.with_suffix(".html")
        try:
            monitor.write_page(page)
        except MissingExtra as error:
            echo(f"no page: {error}", err=True)
        else:
            if not quiet:
                echo(f"page: {page}")
    if result.alarms:
        for alarm in result.alarms if quiet else ():
            echo(f"alarm, {alarm.kind}: {alarm.text}")
        raise typer.Exit(1)
