"""`driftline figure`: one figure as a file, and its numbers as CSV."""

from __future__ import annotations

from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from driftline import registry
from driftline.cli.completion import complete_names
from driftline.cli.options import DataFolder, RunsFolder, check_output, refuse_empty, split_names
from driftline.cli.printing.terminal import echo
from driftline.cli.select_runs import select_runs
from driftline.errors import UserError, unknown_name

if TYPE_CHECKING:
    from driftline.types import JsonObject

FigureName = Annotated[
    str,
    typer.Argument(help="Name of a figure, see below.", metavar="NAME", autocompletion=complete_names("figure")),
]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUNS] [OPTIONS OF THE FIGURE]", help="Keys of runs, or a folder. [default: all]"),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        callback=check_output,
        help=".svg, .pdf, .png, .html, or .vl.json for the Vega-Lite spec. [default: NAME.svg]",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", callback=refuse_empty, help="svg, pdf, png, html or vega. [default: by the suffix of -o, else svg]"
    ),
]
Benchmark = Annotated[str | None, typer.Option(callback=refuse_empty, help="Only runs of this benchmark.")]
Methods = Annotated[str | None, typer.Option(help="Only these methods: names or labels, separated by commas.")]
Width = Annotated[str | None, typer.Option(help="Width in print: 3.3in, 8.4cm, 84mm or 240pt. [default: 3.5in or 7in]")]
Height = Annotated[str | None, typer.Option(help="Height in print. [default: in proportion to the width]")]
Title = Annotated[
    str | None, typer.Option(callback=refuse_empty, help="Title in place of the figure's own, and of its notes.")
]
Colors = Annotated[
    str | None, typer.Option(help="Colors of methods, such as '#0072B2,orange'. [default: the Okabe-Ito palette]")
]
SUFFIXES = {"svg": ".svg", "pdf": ".pdf", "png": ".png", "html": ".html", "vega": ".vl.json"}
FontSize = Annotated[float | None, typer.Option(help="Smallest text in points. [default: 7]")]


class FigureCommand(TyperCommand):
    """A command whose help lists the registered figures and their options."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        rows = []
        for name in registry.names("figure"):
            rows += [(name, registry.summary("figure", name)), *option_rows(name)]
        with formatter.section("Figures"):
            formatter.write_dl(rows)


def figure(
    name: FigureName,
    arguments: Arguments = None,
    output: Output = None,
    format: Format = None,
    benchmark: Benchmark = None,
    methods: Methods = None,
    width: Width = None,
    height: Height = None,
    title: Title = None,
    colors: Colors = None,
    fontsize: FontSize = None,
    runs: RunsFolder = None,
    data_dir: DataFolder = None,
) -> None:
    """Draw a figure of finished runs and write its numbers as CSV. Nothing is trained."""
    from driftline.record.run import Record
    from driftline.report.figures import make
    from driftline.report.figures.base import create
    from driftline.report.figures.export import check_format

    names, options = _split(arguments or [])
    output = _output(name, output, format)
    check_format(output)
    frame = make.figure(
        name,
        select_runs(names, runs) if create(name, options).needs_runs else Record([]),
        output,
        benchmark=benchmark,
        methods=split_names("--methods", methods),
        width=width,
        height=height,
        title=title or "",
        colors=split_names("--colors", colors),
        fontsize=fontsize,
        data_dir=data_dir,
        **options,
    )
    for note in frame.attrs["notes"]:
        echo(note, err=True)
    echo(f"{output}, and its numbers in {output.with_suffix('.csv')}")


def _output(name: str, output: Path | None, format: str | None) -> Path:
    """Return the file to write, in the format that is asked for.

    >>> str(_output("curves", None, "vega")), str(_output("curves", Path("a.pdf"), None))
    ('curves.vl.json', 'a.pdf')
    """
    suffix = SUFFIXES.get(format or "svg")
    if suffix is None:
        raise unknown_name("format", str(format), SUFFIXES)
    if format and output and output.suffix != Path(suffix).suffix:
        raise UserError(f"--format {format} writes a {suffix} file, not {output.name}: leave out one of them")
    return output or Path(f"{name}{suffix}")


def option_rows(name: str) -> list[tuple[str, str]]:
    """Return the options of a figure with their meanings and defaults, for help."""
    from driftline.report.figures.base import options

    return [(f"  --{key}", _help(field)) for key, field in options(name).items()]


def _help(field: Field[object]) -> str:
    default = "" if field.default is None else f" [default: {field.default}]"
    return f"{field.metadata['help']}{default}"


def _split(words: list[str]) -> tuple[list[str], JsonObject]:
    """Split arguments into names of runs and options of the figure.

    >>> _split(["er:0", "--points", "5", "--metric=csr"])
    (['er:0'], {'points': '5', 'metric': 'csr'})
    """
    names: list[str] = []
    options: JsonObject = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            names.append(word)
            continue
        key, equals, value = word.removeprefix("--").partition("=")
        options[key] = value if equals else next(rest, None)
        if options[key] is None:
            raise UserError(f"option {word} needs a value")
        if options[key] == "":
            raise UserError(f"option --{key} is empty")
    return names, options
