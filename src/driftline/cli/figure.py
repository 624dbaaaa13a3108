"""`driftline figure`: one figure as a file, and its numbers beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from driftline.cli.finished import finished
from driftline.cli.places import DataFolder, RunsFolder, file_name
from driftline.cli.terminal import echo


def figure(
    name: Annotated[
        str,
        typer.Argument(
            help="accuracy, transfer or projection (timeline); examples, path, weights, svcca, adjacent or "
            "models-over-time (seq-to-final); curves; composition, "
            "differences or gains (refinement); collapse, growth, severities, schedule or sweep (test-time); "
            "rolling, roc, thresholds or classes (open-world); pareto.",
            metavar="NAME",
        ),
    ],
    runs_given: Annotated[
        list[str] | None, typer.Argument(metavar="[RUNS]", help="Keys of runs, or a folder of runs. [default: all]")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", callback=file_name, help=".svg, .pdf, .png or .html. [default: NAME.svg]"),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(help="Of path: how many, ends included. Of schedule: the first. [default: 21; 100]", min=2),
    ] = None,
    statistics: Annotated[
        str | None, typer.Option(help="Of path: batch norm's, re-estimated or interpolated. [default: re-estimated]")
    ] = None,
    spans: Annotated[
        str | None, typer.Option(help="Of differences: first and last steps. [default: 10-20,30-40, else halves]")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Of gains: which one, else oec. Of differences: one to compare instead of answers. "
            "Of pareto: the one against compute."
        ),
    ] = None,
    over: Annotated[str | None, typer.Option(help="Of gains: the method they are over. [default: frozen]")] = None,
    stream: Annotated[
        Path | None, typer.Option(help="Of composition: a released stream's file, instead of runs.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Of severities: the file of `driftline calibrate`, instead of runs.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Of severities: accuracies in percent that paths keep to. [default: 40,20,0]")
    ] = None,
    pair: Annotated[
        str | None, typer.Option(help="Of severities: two corruptions with a comma between. [default: the first]")
    ] = None,
    setting: Annotated[str | None, typer.Option(help="Of sweep: such as rdumb.every. [default: all that vary]")] = None,
    runs: RunsFolder = None,
    data_dir: DataFolder = None,
) -> None:
    """Draw a figure of finished runs; its table is written beside it as CSV. Nothing is trained."""
    from driftline.record import Record
    from driftline.report.figures import check_format, draw, save

    output = output or Path(f"{name}.svg")
    check_format(output)
    record = Record([]) if stream or calibration else finished(runs_given, runs)
    options: dict[str, Any] = {
        "points": points,
        "statistics": statistics,
        "spans": spans,
        "metric": metric,
        "over": over,
    }
    options |= {"calibration": calibration, "target": target, "pair": pair, "setting": setting}
    frame, chart = draw(name, record, where=data_dir, stream=stream, **options)
    table = save(frame, chart, output)
    for note in frame.attrs.get("notes", []):
        echo(note, err=True)
    echo(f"{output}, and its numbers in {table}")
