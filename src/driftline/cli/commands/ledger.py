"""`driftline ledger`: compare committed results with the published tables and figures."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import DataFolder, check_output
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError

if TYPE_CHECKING:
    from driftline.ledger.results import FigureColumns
    from driftline.record.run import Record

app = typer.Typer(invoke_without_command=True, help="Compare results with the published tables and figures.")

Folder = Annotated[Path, typer.Option("--results", help="The folder of the results.")]
PageFile = Annotated[
    Path,
    typer.Option("-o", "--output", callback=check_output, help="The Markdown file; the picture is written beside."),
]


@app.callback()
def ledger(
    context: typer.Context,
    results: Folder = Path("results"),
    output: PageFile = Path("docs/ledger.md"),
    stale: Annotated[
        bool, typer.Option("--stale", help="Write nothing; list the results that other code made.")
    ] = False,
) -> None:
    """Write the ledger: every table and figure of the papers, the printed numbers and ours, and which findings hold."""
    if context.invoked_subcommand is not None:
        return
    from driftline.ledger.results import read_results

    found = read_results(results)
    if stale:
        outdated = {name: why for name, result in found.items() if (why := result.stale)}
        lines = [f"{name}: {why}" for name, why in outdated.items()]
        echo("\n".join([*lines, f"{len(outdated)} of {len(found)} result(s) were made by other code"]))
        return
    from driftline.io.atomic import write_bytes
    from driftline.ledger.catalog import papers
    from driftline.ledger.page import PICTURE, write_page
    from driftline.ledger.picture import write_picture

    write_bytes(output, write_page(papers(), found).encode())
    write_picture(papers(), found, output.with_name(PICTURE))
    echo(f"ledger: {output}")


@app.command()
def count(
    name: Annotated[str | None, typer.Argument(help="The result. [default: all]")] = None,
    results: Folder = Path("results"),
    data_dir: DataFolder = None,
) -> None:
    """Add results that need no runs: samples, classes, parameters and multiply-accumulates that are counted."""
    from driftline.ledger.counts import COUNTS, count
    from driftline.ledger.results import add_scores, header_of_table

    for chosen in [name] if name else COUNTS:
        scores, note = count(chosen, data_dir)
        header = header_of_table(f"driftline ledger count {chosen}", note, datetime.now().date().isoformat())
        add_scores(results, chosen, scores, header)
        echo(f"result: {results / chosen}")


@app.command()
def add(
    source: Annotated[str, typer.Argument(metavar="RUNS", help="A folder of finished runs, or a CSV file of scores.")],
    recipe: Annotated[str | None, typer.Option(help="The recipe that was run; also the name of the result.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the result. [default: the recipe's]")] = None,
    command: Annotated[str | None, typer.Option(help="The exact command. [default: driftline run recipe:NAME]")] = None,
    note: Annotated[str, typer.Option(help="The scale in words: what is smaller than in the paper.")] = "",
    value: Annotated[
        str | None, typer.Option(help="For the CSV file of a figure: the columns of its values, separated by commas.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="The columns that name a value's statistic, separated by commas.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="The metrics of these columns. [default: their names]")] = None,
    results: Folder = Path("results"),
) -> None:
    """Add finished runs, a table of scores or the numbers of a figure to the results."""
    from driftline.ledger import results as ledger_results

    chosen = _name(name or recipe)
    command = command or (f"driftline run recipe:{recipe}" if recipe else "")
    if not command:
        raise UserError("say how it was made: give --recipe, or --command with the exact command")
    if source.endswith(".csv"):
        path = Path(source)
        columns = _figure_columns(value, by, metric)
        ledger_results.read_scores(path, columns)
        date = datetime.fromtimestamp(path.stat().st_mtime).date().isoformat()
        ledger_results.add_table(results, chosen, path, ledger_results.header_of_table(command, note, date), columns)
    elif value:
        raise UserError(f"--value {value} is a column of a figure's CSV file, and {source} is not one")
    else:
        from driftline.cli.select_runs import select_runs

        record, missing = _of_recipe(recipe, command, select_runs(None, source, None))
        header = ledger_results.header_of_runs(record.runs, command, recipe or "", note, missing)
        ledger_results.add_runs(results, chosen, record, header)
    echo(f"result: {results / chosen}")


def _figure_columns(value: str | None, by: str | None, metric: str | None) -> FigureColumns | None:
    from driftline.cli.options import split_names
    from driftline.ledger.results import FigureColumns

    if value is None:
        if by or metric:
            raise UserError("--by and --metric describe the values of a figure: give their column with --value")
        return None
    columns = split_names("--value", value)
    metrics = split_names("--metric", metric) or columns
    if len(metrics) != len(columns):
        raise UserError(f"--value has {len(columns)} columns and --metric {len(metrics)} names: give one for each")
    return FigureColumns(dict(zip(columns, metrics, strict=True)), tuple(split_names("--by", by)))


def _name(name: str | None) -> str:
    if not name:
        raise UserError("the result needs a name: give --recipe or --name")
    if any(part in ("", ".", "..") for part in name.split("/")) or "\\" in name:
        raise UserError(f"--name {name}: give a path inside of the results, such as refinement/digits.cpu")
    return name


def _of_recipe(recipe: str | None, command: str, record: Record) -> tuple[Record, list[str]]:
    """Return the runs of a recipe, and which are missing; all runs of another command, which may have other methods."""
    from driftline.recipes import PREFIX
    from driftline.record.run import Record
    from driftline.spec import read

    if not recipe or command != f"driftline run {PREFIX}{recipe}":
        return record, []
    expected = [(job.label, job.seed) for job in read(f"{PREFIX}{recipe}").jobs(default_model="mlp")]
    runs = [run for run in record.runs if (run.method, run.seed) in expected]
    if not runs:
        raise UserError(f"none of these {len(record.runs)} runs is one of recipe:{recipe}")
    present = {(run.method, run.seed) for run in runs}
    return Record(runs), [f"{label} seed {seed}" for label, seed in expected if (label, seed) not in present]
