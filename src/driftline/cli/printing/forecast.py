"""Printing of cost forecasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from rich.status import Status

from driftline.cli.printing.console import SafeConsole
from driftline.cli.printing.progress_message import progress_message
from driftline.cli.printing.terminal import echo

if TYPE_CHECKING:
    from driftline.engine.costs.forecast import Forecast

UNITS = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))
LOG_INTERVAL = 5.0  # seconds between two lines of a log
TIMES = (("years", 365.25 * 86400), ("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


class ForecastProgress:
    """Progress of a forecast: a message while it plans, then profiling, live on a terminal, as lines in a log."""

    def __init__(self, what: str, quiet: bool) -> None:
        terminal = sys.stderr.isatty()
        self._status: Status | None = SafeConsole(stderr=True).status("") if terminal and not quiet else None
        self._logs, self._latest = not terminal and not quiet, time.monotonic()
        self._planning = ExitStack()
        self._planning.enter_context(progress_message(f"planning {what}", quiet))

    def __enter__(self) -> ForecastProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._planning.close()
        if self._status:
            self._status.stop()

    def watch(self, done: int, total: int, name: str) -> None:
        """Show the next kind of stage."""
        self.show(f"profiling {min(done + 1, total)} of {total} kinds of stages: {name}")

    def show(self, text: str) -> None:
        """Show a message."""
        self._planning.close()
        if self._status:
            self._status.start()
            self._status.update(text.replace("[", r"\["))
        elif self._logs and time.monotonic() - self._latest > LOG_INTERVAL:
            self._latest = time.monotonic()
            echo(text, err=True)


def forecast_text(forecast: Forecast) -> str:
    """Return a forecast as plain text."""
    return "\n".join([*_stages(forecast), "", *_totals(forecast), "", *_times(forecast), *_assumptions(forecast)])


def _stages(forecast: Forecast) -> Iterable[str]:
    """Return a table of the kinds of stages, in the order of computation."""
    head = ("stage", "number", "in the store", "to do: time of one worker", "MACs", "disk")
    rows: list[Sequence[str]] = [("data", str(forecast.datasets), "", format_duration(forecast.reading), "", "")]
    for title, row in forecast.kinds.items():
        cost = (format_duration(row.seconds), format_amount(row.macs), f"{format_amount(row.bytes)}B")
        rows.append((title, f"{row.stages:,}", f"{row.done:,}", *cost))
    return text_table(head, rows)


def _totals(forecast: Forecast) -> Iterable[str]:
    yield f"in all {format_amount(forecast.macs)} multiply-accumulates and {format_amount(forecast.bytes)}B of disk"
    if forecast.sharing is not None:
        yield forecast.sharing.describe()


def _times(forecast: Forecast) -> Iterable[str]:
    rows = [(f"{n:,}", format_duration(seconds)) for n, seconds in forecast.seconds.items()]
    return text_table(("workers", "time"), rows)


def _assumptions(forecast: Forecast) -> Iterable[str]:
    sampled = forecast.groups - forecast.known - forecast.extrapolated
    yield ""
    yield (
        f"Profiled in {format_duration(forecast.profiling)}: {sampled} kinds of stages by sampling, "
        f"{forecast.known} by finished stages in the store, {forecast.extrapolated} by similar stages."
    )
    worker = " or ".join(forecast.accelerators) or "one core"
    yield f"A worker is {worker} of this machine, with nothing else to do; fits are taken to use all their epochs,"
    started, planned = format_duration(forecast.start), format_duration(forecast.planning)
    yield f"and all search runs to be required. It takes {started} to start, and planning {planned}."
    for note in forecast.notes:
        yield f"note: {note}"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned columns, the first to the left and the others to the right.

    >>> text_table(("a", "b"), [("x", "10")])
    ['a   b', 'x  10']
    """
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    return [
        "  ".join(cell.rjust(n) if k else cell.ljust(n) for k, (cell, n) in enumerate(zip(row, widths, strict=True)))
        for row in (head, *rows)
    ]


def format_amount(number: float) -> str:
    """Return a number with three digits and a unit prefix.

    >>> format_amount(1_234_567), format_amount(999), format_amount(0), format_amount(2.5e21)
    ('1.23 M', '999 ', '0 ', '2500 E')
    """
    letter, size = next(((letter, size) for letter, size in UNITS if number >= size), ("", 1.0))
    return f"{_digits(number / size)} {letter}"


def format_duration(seconds: float) -> str:
    """Return seconds in a suitable unit.

    >>> format_duration(0.25), format_duration(75), format_duration(7200), format_duration(1e9)
    ('0.25 s', '1.25 min', '2.00 h', '31.7 years')
    """
    unit, size = next(((unit, size) for unit, size in TIMES if seconds >= size), ("s", 1.0))
    return f"{_digits(seconds / size)} {unit}"


def _digits(number: float) -> str:
    if number == 0 or number >= 100:
        return f"{number:.0f}"
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"
