"""The tables of RDumb (Press, Schneider, Kuemmerer, Bethge) with a column per network."""

from __future__ import annotations

from driftline.errors import UserError
from driftline.published.numbers import published_name
from driftline.registry import register
from driftline.report.analysis.estimates import Estimate, estimates
from driftline.report.analysis.frozen_baseline import STREAM
from driftline.report.analysis.groups import Group, group_ignoring
from driftline.report.analysis.published import numbers, source_note
from driftline.report.analysis.repeats import average_repeats
from driftline.report.tables.model import Table, TableRow
from driftline.report.tables.papers.base import cell, columns, order, published_row, require_runs, titled
from driftline.report.tables.papers.test_time import BENCHMARK, DATA, IGNORED, INTERVALS, METHODS, stream_name

PUBLISHED = "Rows with a source are as published there, for streams of 7.5 million images of ImageNet."


@register("paper-table", "test-time/table-2")
def table_2(groups: list[Group]) -> list[Table]:
    """Networks on CCC-Medium."""
    return _by_network(groups, 2, "ccc medium", "RDumb Table 2", "RDumb Table 1")


@register("paper-table", "test-time/table-3")
def table_3(groups: list[Group]) -> list[Table]:
    """Networks on CCC-Hard."""
    return _by_network(groups, 3, "ccc hard", "RDumb Table 3", "RDumb Table 1")


@register("paper-table", "test-time/table-9")
def table_9(groups: list[Group]) -> list[Table]:
    """Weight of EATA's Fisher penalty on CCC-Medium, by network."""
    return _by_network(groups, 9, "ccc medium", "RDumb Table 9", "RDumb Table 2", only="eata")


def _by_network(groups: list[Group], number: int, stream: str, *sources: str, only: str = "") -> list[Table]:
    """Return methods by networks; numbers that a table shares with another are stored with the second source."""
    ours = [group for group in groups if stream_name(group) == stream]
    require_runs(ours, BENCHMARK, f"on {stream}")
    tables = []
    for settings, members in group_ignoring(ours, (*IGNORED, "model", "model.")):
        networks = {group.card.run.model.name: group for group in average_repeats(members)}
        if len(networks) < len(average_repeats(members)):
            raise UserError("there are two kinds of runs for one network: name the runs that the table is of")
        title = titled(f"Table {number}: accuracy on {stream} by network", settings)
        tables.append(
            Table(title, "method", columns(*networks), _rows(networks, stream, sources, only), (INTERVALS, PUBLISHED))
        )
    return tables


def _rows(networks: dict[str, Group], stream: str, sources: tuple[str, ...], only: str) -> tuple[TableRow, ...]:
    found = {name: estimates(group, STREAM) for name, group in networks.items()}
    theirs = {
        name: {n.method: Estimate(n.value) for n in numbers(group.card, DATA, stream, name) if n.source in sources}
        for name, group in networks.items()
    }
    rows: list[TableRow] = []
    labels = {label for column in found.values() for label in column if label.startswith(only)}
    for label in sorted(labels, key=lambda label: (order(METHODS)(label.partition("(")[0]), label)):
        rows.append(TableRow(label, tuple(cell(column.get(label)) for column in found.values())))
        printed = published_name(BENCHMARK, label)
        cells = tuple(cell(column.get(printed)) for column in theirs.values())
        rows += published_row(label, cells, source_note(next(iter(networks.values())).card, sources[0]))
    return tuple(rows)
