"""`driftline`: few verbs, errors in sentences, exit codes that scripts can trust.

0: done. 1: some runs failed, or a gate did. 2: something given cannot be used. 70: a bug, with its traceback. 130:
interrupted; the same `run` or `quickstart` resumes.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from driftline.cli.collapse_2d import collapse_2d
from driftline.cli.commands.audit import audit
from driftline.cli.commands.calibrate import calibrate
from driftline.cli.commands.check import check
from driftline.cli.commands.export import export
from driftline.cli.commands.few_shot import few_shot
from driftline.cli.commands.figure import FigureCommand, figure
from driftline.cli.commands.forget import forget
from driftline.cli.commands.plan import plan
from driftline.cli.commands.run import run
from driftline.cli.commands.watch import watch
from driftline.cli.places import RunsFolder, check_output
from driftline.cli.printing.terminal import echo
from driftline.cli.select_runs import select_runs
from driftline.errors import ClusterLost, UserError
from driftline.version import __version__

INTERRUPTED_EXIT_CODE = 130
BUG_EXIT_CODE = 70

RUN_HELP = "A run: METHOD:SEED such as er:0, its key or the first letters of it, or its folder."

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110},
    rich_markup_mode=None,  # which would take "[default: all]" for markup and swallow it
    help="Measure learners in a world that changes over time.",
)


@app.command("list")
def list_(
    kind: Annotated[
        str,
        typer.Argument(
            help="methods, benchmarks, datasets, models, metrics, shifts, figures, paper-tables, exporters, or runs"
        ),
    ],
    runs: RunsFolder = None,
) -> None:
    """What can be named, or what has been run."""
    if kind == "runs":
        from driftline.cli.printing import runs as show
        from driftline.store.store import Store

        show.print_store_runs(Store.open(runs))
    else:
        from driftline.cli.printing.names import names

        names(kind)


@app.command()
def show(
    run: Annotated[str, typer.Argument(help=RUN_HELP)],
    runs: RunsFolder = None,
) -> None:
    """One run: its scores and its protocol card."""
    from driftline.cli.printing import runs as show
    from driftline.store.store import Store

    show.print_run(Store.open(runs), run)


@app.command()
def diff(
    first: Annotated[str, typer.Argument(help=RUN_HELP)],
    second: Annotated[str, typer.Argument(help="The other, in the same way.")],
    runs: RunsFolder = None,
) -> None:
    """Why the numbers of two runs differ: what is not the same on their cards, then the scores."""
    from driftline.cli.printing import runs as show
    from driftline.store.store import Store

    store = Store.open(runs)
    show.print_difference(store.find(first), store.find(second))


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT over the tables runs, failures, answers, probes and scores.")],
    runs: RunsFolder = None,
) -> None:
    """Ask all runs at once, in SQL; prints CSV."""
    from driftline.io.sanitize import frame_to_csv
    from driftline.store.store import Store

    echo(frame_to_csv(Store.open(runs).query(sql)), nl=False)


@app.command()
def table(
    runs_given: Annotated[
        list[str] | None, typer.Argument(metavar="[RUNS]", help="Keys of runs, or a folder of runs. [default: all]")
    ] = None,
    format: Annotated[str, typer.Option(help="md, latex or csv")] = "md",
    paper: Annotated[
        str | None,
        typer.Option(help="A paper's table, such as seq-to-final/table-9; see `driftline list paper-tables`."),
    ] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="Methods by benchmarks, of `driftline run matrix`.")] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Pairwise comparison of methods: paired difference, interval, corrected p."),
    ] = False,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="Mean ranks of methods over data, models and sequences.")
    ] = False,
    runs: RunsFolder = None,
) -> None:
    """Print a table of results: methods by metrics, mean and interval over seeds; or one of the tables below."""
    from driftline.report.tables.comparison import comparison_tables
    from driftline.report.tables.matrix import matrix_tables
    from driftline.report.tables.papers import paper_tables
    from driftline.report.tables.ranking import ranking_tables
    from driftline.report.tables.render import render
    from driftline.report.tables.result import result_tables

    if bool(paper) + matrix + compare + ranks > 1:
        raise UserError("--paper, --matrix, --compare and --ranks each make a table of their own: give one of them")
    record = select_runs(runs_given, runs, None if paper or matrix else ("scores",))
    if paper:
        tables = paper_tables(record, paper)
    elif matrix:
        tables = matrix_tables(record)
    elif compare:
        tables = comparison_tables(record)
    else:
        tables = ranking_tables(record) if ranks else result_tables(record)
    echo(render(tables, format), nl=False)


@app.command()
def report(
    runs_given: Annotated[
        list[str] | None, typer.Argument(metavar="[RUNS]", help="Keys of runs, or a folder of runs. [default: all]")
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", callback=check_output, help="The HTML file to write.")
    ] = Path("report.html"),
    runs: RunsFolder = None,
) -> None:
    """Write one self-contained HTML page."""
    from driftline.report.page.page import write_report

    write_report(select_runs(runs_given, runs), output)
    echo(f"report: {output}")


@app.command()
def quickstart(
    output: Annotated[
        Path, typer.Option("-o", "--output", callback=check_output, help="The HTML file to write.")
    ] = Path("quickstart.html"),
    runs: Annotated[
        str | None,
        typer.Option("--runs", help="Where runs are kept. [default: $DRIFTLINE_RUNS, else ./quickstart-runs]"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Worker processes. Results do not depend on it.", min=1)] = 2,
) -> None:
    """All benchmarks and an audit in miniature on embedded data, then the report."""
    from driftline.cli.commands.quickstart import quickstart as go

    raise typer.Exit(go(output, runs, jobs))


app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(run)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(plan)
app.command()(audit)
app.command()(calibrate)
app.command()(check)
app.command("collapse-2d")(collapse_2d)
app.command()(few_shot)
app.command()(export)
app.command(cls=FigureCommand, context_settings={"ignore_unknown_options": True})(figure)
app.command()(forget)
app.command()(watch)


def main() -> NoReturn:
    """Run the command line and turn what happens into an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    _use_utf8()
    _print_log()
    try:
        code = app(standalone_mode=False)
    except UserError as error:
        echo(f"driftline: {error}", err=True)
        if isinstance(error, ClusterLost):
            os._exit(2)  # at once: Ray, which still waits for its head, would end this process with another code
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED_EXIT_CODE
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # a usage error found by the parser
            error.show()
            sys.exit(error.exit_code)
        echo(traceback.format_exc(), err=True)
        sys.exit(BUG_EXIT_CODE)  # never 1: a script must not take a bug for a gate that failed
    if code == INTERRUPTED_EXIT_CODE:  # the parser may have turned Ctrl-C into this code already
        resumes = sys.argv[1:2] in (["run"], ["quickstart"])
        echo(f"interrupted{': the same command resumes where this one stopped' if resumes else ''}", err=True)
    sys.exit(code or 0)


def _use_utf8() -> None:
    """Write UTF-8 to files and pipes, and escape what a terminal's own encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


class _PrintHandler(logging.Handler):
    """Prints what the library logs, such as which of the user's files it runs."""

    def emit(self, record: logging.LogRecord) -> None:
        echo(self.format(record), err=True)


def _print_log() -> None:
    log = logging.getLogger("driftline")
    log.setLevel(logging.INFO)
    log.handlers = [_PrintHandler()]


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        echo(__version__)
        raise typer.Exit


if __name__ == "__main__":
    main()
