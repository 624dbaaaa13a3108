"""`driftline watch`: show the progress of a sweep from another terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.printing.terminal import echo
from driftline.errors import UserError
from driftline.io.sanitize import escape_control

if TYPE_CHECKING:
    from rich.console import Console

    from driftline.store.store import Store

POLL_INTERVAL = 1.0  # seconds between two updates
REPEAT_AFTER = 30.0  # seconds after which a log repeats an unchanged line


def watch(
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[RUNS]", help="Folder of the runs. [default: $DRIFTLINE_RUNS, else ./driftline-runs]"),
    ] = None,
    runs: Annotated[str | None, typer.Option("--runs", help="The same, as for other commands.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the current state and exit.")] = False,
) -> None:
    """Show the progress of a sweep in another process.

    Its curves are drawn until it ends.
    """
    from driftline.cli.printing.console import SafeConsole
    from driftline.store.store import Store

    store = Store.open(folder or runs)
    if not store.folder.exists():
        raise UserError(f"there is no {store.folder}: name the folder of the runs with --runs")
    console = SafeConsole(highlight=False, markup=False, emoji=False)
    plain = not _supports_unicode(console)
    if once or not console.is_terminal or console.is_dumb_terminal:
        _print_lines(store, plain, once)
    else:
        _live(store, console, plain)


def _supports_unicode(console: Console) -> bool:
    """Return whether the terminal can show block characters."""
    return console.encoding.startswith("utf") and not console.is_dumb_terminal


def _live(store: Store, console: Console, plain: bool) -> None:
    from rich.live import Live
    from rich.text import Text

    from driftline.report.live.view import render

    with Live(console=console, auto_refresh=False) as screen:
        while True:
            seen = render(store, time.time(), console.height, plain)
            text = Text(escape_control("\n".join(seen.lines)), no_wrap=True, overflow="ellipsis")
            screen.update(text, refresh=True)
            if not seen.running:
                return
            time.sleep(POLL_INTERVAL)


def _print_lines(store: Store, plain: bool, once: bool) -> None:
    """Print a line when something changed, and everything at the end: for logs and dumb terminals."""
    from driftline.report.live.view import render

    printed, when = "", 0.0
    while (seen := render(store, time.time(), ascii=plain)).running and not once:
        counts, _, left = seen.lines[0].partition(";")
        if counts != printed or time.monotonic() - when >= REPEAT_AFTER:
            echo(f"{counts};{left}")
            printed, when = counts, time.monotonic()
        time.sleep(POLL_INTERVAL)
    echo("\n".join(seen.lines))
