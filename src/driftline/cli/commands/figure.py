"""`driftline figure`: one figure as a file, and its numbers as CSV."""

from __future__ import annotations

from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from driftline import registry
from driftline.cli.options import DataFolder, RunsFolder, check_output
from driftline.cli.printing.terminal import echo
from driftline.cli.select_runs import select_runs
from driftline.errors import UserError

if TYPE_CHECKING:
    from driftline.types import JsonObject


class FigureCommand(TyperCommand):
    """A command whose help lists the registered figures and their options."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        rows = []
        for name in registry.names("figure"):
            rows += [(name, registry.summary("figure", name)), *option_rows(name)]
        with formatter.section("Figures"):
            formatter.write_dl(rows)


def figure(
    name: Annotated[str, typer.Argument(help="Name of a figure, see below.", metavar="NAME")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUNS] [OPTIONS OF THE FIGURE]", help="Keys of runs, or a folder. [default: all]"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", callback=check_output, help=".svg, .pdf, .png or .html. [default: NAME.svg]"),
    ] = None,
    runs: RunsFolder = None,
    data_dir: DataFolder = None,
) -> None:
    """Draw a figure of finished runs and write its numbers as CSV. Nothing is trained."""
    from driftline.record.run import Record
    from driftline.report.figures.base import create, draw
    from driftline.report.figures.export import check_format, save

    names, options = _split(arguments or [])
    output = output or Path(f"{name}.svg")
    check_format(output)
    record = select_runs(names, runs) if create(name, options).needs_runs else Record([])
    frame, chart = draw(name, record, data_dir, **options)
    table = save(frame, chart, output)
    for note in frame.attrs["notes"]:
        echo(note, err=True)
    echo(f"{output}, and its numbers in {table}")


def option_rows(name: str) -> list[tuple[str, str]]:
    """Return the options of a figure with their meanings and defaults, for help."""
    from driftline.report.figures.base import options

    return [(f"  --{key}", _help(field)) for key, field in options(name).items()]


def _help(field: Field[Any]) -> str:
    default = "" if field.default is None else f" [default: {field.default}]"
    return f"{field.metadata['help']}{default}"


def _split(words: list[str]) -> tuple[list[str], JsonObject]:
    """Split arguments into names of runs and options of the figure.

    >>> _split(["er:0", "--points", "5", "--metric=csr"])
    (['er:0'], {'points': '5', 'metric': 'csr'})
    """
    names: list[str] = []
    options: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            names.append(word)
            continue
        key, equals, value = word.removeprefix("--").partition("=")
        options[key] = value if equals else next(rest, None)
        if options[key] is None:
            raise UserError(f"option {word} needs a value")
    return names, options
