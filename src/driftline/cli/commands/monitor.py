"""`driftline monitor`: fit a monitor of a deployed model once, then check each new batch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.audit_flags import File, with_audit_flags
from driftline.cli.options import check_output
from driftline.cli.printing.terminal import echo
from driftline.errors import MissingExtra

app = typer.Typer(no_args_is_help=True, help="Watch a deployed model: fit once, then check each new batch.")

READING = (
    *("time", "target", "predictions", "probability", "features", "columns", "task", "label_time"),
    *("sep", "encoding", "decimal", "date_format"),
)
"""The options of an audit that say how a table is read."""
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
Delay = Annotated[str | None, typer.Option(help="How long after their rows labels are known, such as 60d.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print alarms only.")]


@app.command()
@with_audit_flags(*READING)
def fit(
    reference: File,
    *,
    model: ModelName = "hist-gradient-boosting",
    id: Id = None,
    metric: MetricName = None,
    delay: Delay = None,
    output: WatchFile = Path("watch.json"),
    quiet: Quiet = False,
    **given: object,
) -> None:
    """Fit a monitor on a reference: rows with labels on which the deployed model was trained."""
    monitoring = import_module("driftline.monitoring")
    chosen = {name: value for name, value in given.items() if value is not None}
    monitor = monitoring.Monitor.fit(reference, id=id, model=model, metric=metric, delay=delay, **chosen)
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
