"""`driftline figure`: one figure as a file, and its numbers beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from driftline.record import Record
    from driftline.store import Store


def figure(
    name: Annotated[
        str,
        typer.Argument(
            help="examples, path, weights, svcca, adjacent or models-over-time (seq-to-final); curves; composition, "
            "differences or gains (refinement).",
            metavar="NAME",
        ),
    ],
    runs_given: Annotated[
        list[str] | None, typer.Argument(metavar="[RUNS]", help="Keys of runs. [default: all]")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help=".svg, .pdf, .png or .html. [default: NAME.svg]")
    ] = None,
    points: Annotated[int | None, typer.Option(help="Of path: how many, ends included. [default: 21]", min=2)] = None,
    statistics: Annotated[
        str | None, typer.Option(help="Of path: batch norm's, re-estimated or interpolated. [default: re-estimated]")
    ] = None,
    spans: Annotated[
        str | None, typer.Option(help="Of differences: first and last steps. [default: 10-20,30-40, else halves]")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="Of gains: which one, else oec. Of differences: one to compare instead of answers."),
    ] = None,
    over: Annotated[str | None, typer.Option(help="Of gains: the method they are over. [default: frozen]")] = None,
    stream: Annotated[
        Path | None, typer.Option(help="Of composition: a released stream's file, instead of runs.")
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", help="Where runs are kept. [default: $DRIFTLINE_RUNS, else ./driftline-runs]"),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Where data are. [default: $DRIFTLINE_DATA, else the user's cache]"),
    ] = None,
) -> None:
    """Draw a figure of finished runs; its table is written beside it as CSV. Nothing is trained."""
    from driftline.record import Record
    from driftline.report.figures import check_format, draw, save
    from driftline.store import Store

    output = output or Path(f"{name}.svg")
    check_format(output)
    record = Record([]) if stream else _record(Store.open(runs), runs_given)
    options = {"points": points, "statistics": statistics, "spans": spans, "metric": metric, "over": over}
    frame, chart = draw(name, record, where=data_dir, stream=stream, **options)
    table = save(frame, chart, output)
    for note in frame.attrs.get("notes", []):
        typer.echo(note, err=True)
    typer.echo(f"{output}, and its numbers in {table}")


def _record(store: Store, keys: list[str] | None) -> Record:
    from driftline.errors import UserError
    from driftline.record import Record

    record = Record([store.find(key) for key in keys]) if keys else store.record()
    if not len(record):
        raise UserError(f"no finished run in {store.folder}: make one, or name the folder with --runs")
    return record
