"""The command line: the app, errors printed as sentences, and exit codes.

0: done. 1: a run or a gate failed. 2: the input cannot be used. 70: a bug, with its traceback. 130: interrupted.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import traceback
import warnings
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from driftline.cli.commands.audit import audit
from driftline.cli.commands.calibrate import calibrate
from driftline.cli.commands.check import check
from driftline.cli.commands.diff import diff
from driftline.cli.commands.export import export
from driftline.cli.commands.few_shot import few_shot
from driftline.cli.commands.figure import FigureCommand, figure
from driftline.cli.commands.help import help_
from driftline.cli.commands.ledger import app as ledger
from driftline.cli.commands.list import list_
from driftline.cli.commands.monitor import app as monitor
from driftline.cli.commands.new import new
from driftline.cli.commands.plan import plan
from driftline.cli.commands.query import query
from driftline.cli.commands.quickstart import quickstart
from driftline.cli.commands.recipes import recipes
from driftline.cli.commands.remove import remove
from driftline.cli.commands.report import report
from driftline.cli.commands.run import RunCommand, run
from driftline.cli.commands.shift import shift
from driftline.cli.commands.show import show
from driftline.cli.commands.table import table
from driftline.cli.commands.watch import watch
from driftline.cli.printing.terminal import echo
from driftline.errors import ClusterLost, UserError, shorten
from driftline.version import __version__

INTERRUPTED_EXIT_CODE = 130
BUG_EXIT_CODE = 70
RESUMED = ("run", "quickstart", "audit", "calibrate")
"""Commands that keep what they have computed: given again, they go on where they were interrupted."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110, "help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # which would take "[default: all]" for markup and swallow it
    help="Measure learners in a world that changes over time.",
)


ANY_FLAG = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command("help")(help_)
app.command("list")(list_)
app.command()(recipes)
app.command()(show)
app.command()(diff)
app.command()(query)
app.command()(table)
app.command()(report)
app.command()(quickstart)
app.command(cls=RunCommand, context_settings=ANY_FLAG)(run)
app.command(context_settings=ANY_FLAG)(plan)
app.command()(audit)
app.add_typer(monitor, name="monitor")
app.add_typer(ledger, name="ledger")
app.command()(calibrate)
app.command()(check)
app.command()(few_shot)
app.command()(shift)
app.command()(export)
app.command(cls=FigureCommand, context_settings={"ignore_unknown_options": True})(figure)
app.command()(remove)
app.command()(watch)
app.command()(new)


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    signal.signal(signal.SIGTERM, _interrupt)
    _use_utf8()
    _print_log()
    warnings.filterwarnings("ignore", "Image size .* exceeds limit")  # Pillow's; a sentence refuses such a picture
    try:
        _check_arguments()
        code = app(prog_name="driftline", standalone_mode=False)
    except UserError as error:
        echo(f"driftline: {error}", err=True)
        if isinstance(error, ClusterLost):
            os._exit(2)  # at once: Ray, which still waits for its head, would end this process with another code
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED_EXIT_CODE
    except OSError as error:
        if error.filename is None:
            _exit_with_traceback()
        echo(f"driftline: cannot use {shorten(str(error.filename))}: {error.strerror}", err=True)
        sys.exit(2)
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # a usage error found by the parser
            _print_usage_error(error)
            sys.exit(error.exit_code)
        _exit_with_traceback()
    if code == INTERRUPTED_EXIT_CODE:  # the parser may have turned Ctrl-C into this code already
        resumes = any(word in RESUMED for word in sys.argv[1:2])
        echo(f"interrupted{': the same command resumes where this one stopped' if resumes else ''}", err=True)
    sys.exit(code or 0)


def _check_arguments() -> None:
    """Refuse arguments that are not text in the system's encoding: no record or page could name such a file."""
    for argument in sys.argv[1:]:
        if any("\udc80" <= letter <= "\udcff" for letter in argument):
            name = argument.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            encoding = sys.getfilesystemencoding()
            raise UserError(
                f"{shorten(name)} is not text in the encoding {encoding}: set PYTHONUTF8=1, or rename the file"
            )


def _print_usage_error(error: Any) -> None:
    """Print one sentence, or the help of a command that was given nothing."""
    message = error.format_message()
    if message.startswith("Usage:"):
        error.show()
        return
    command = error.ctx.command_path if error.ctx else "driftline"
    echo(f"driftline: {message if message.endswith('?') else message.rstrip('.') + '.'} See `{command} -h`", err=True)


def _exit_with_traceback() -> NoReturn:
    echo(traceback.format_exc(), err=True)
    sys.exit(BUG_EXIT_CODE)  # never 1: a script must not take a bug for a gate that failed


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
