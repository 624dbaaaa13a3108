"""Parts that tables of different papers share."""

from __future__ import annotations

from collections.abc import Callable

from driftline.errors import UserError
from driftline.report.analysis.estimates import Estimate
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import PLAIN, Highlight
from driftline.report.format import format_percent
from driftline.report.tables.model import TableCell, TableColumn, TableRow


def require_runs(groups: list[Group], benchmark: str, which: str = "") -> None:
    """Raise an error if there are no runs for a table."""
    if not groups:
        raise UserError(f"no run of {benchmark} {which}".rstrip() + ": make one with `driftline run`")


def cell(estimate: Estimate | None, highlight: Highlight | None = None) -> TableCell | None:
    """Return an estimate as a cell."""
    return None if estimate is None else TableCell(estimate, highlight or PLAIN)


def published(value: float | None) -> TableCell | None:
    """Return a published number as a cell."""
    return None if value is None else TableCell(Estimate(value))


def published_row(name: str, cells: tuple[TableCell | None, ...], source: str) -> list[TableRow]:
    """Return a row of published numbers; none if there are none."""
    return [TableRow(name, cells, source)] if any(cells) else []


def columns(*names: str, format: Callable[[float | None], str] = format_percent) -> tuple[TableColumn, ...]:
    """Return columns of numbers."""
    return tuple(TableColumn(name, format=format) for name in names)


def titled(title: str, settings: str) -> str:
    """Return a title with the settings that distinguish a table from others of the same name."""
    return " · ".join(filter(None, (title, settings)))


def order(names: tuple[str, ...]) -> Callable[[str], tuple[int, str]]:
    """Return a sort key: names in this order, others after them alphabetically."""
    return lambda name: (names.index(name) if name in names else len(names), name)


def has_source(rows: list[TableRow]) -> bool:
    """Return whether any row is published."""
    return any(row.source for row in rows)
