"""What layouts of different papers have in common."""

from __future__ import annotations

from collections.abc import Callable

from driftline.errors import UserError
from driftline.report.analysis.estimates import Entry, Measured
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import PLAIN, Mark
from driftline.report.tables.paper_grid import Grid

Layout = Callable[[list[Group]], list[Grid]]


def refuse_none(found: list[Group], benchmark: str, which: str = "") -> None:
    """There must be runs to lay out."""
    if not found:
        raise UserError(f"no run of {benchmark} {which}".rstrip() + ": make one with `driftline run`")


def entry(cell: Measured | None, mark: Mark | None) -> Entry | None:
    """A cell of ours as a table has it."""
    return cell.entry(mark or PLAIN) if cell else None


def titled(title: str, told: str) -> str:
    """A table's title with what tells it from others of the same name."""
    return " · ".join(filter(None, (title, told)))


def place(order: tuple[str, ...]) -> Callable[[str], tuple[int, str]]:
    """Sorts names as in `order`, others after them by the alphabet."""
    return lambda name: (order.index(name) if name in order else len(order), name)
