"""The tables of In the Wild (NED) about its sequences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driftline.registry import register
from driftline.report.analysis.estimates import Estimate, estimates
from driftline.report.analysis.groups import Group
from driftline.report.analysis.published import numbers, source_note
from driftline.report.format import format_amount
from driftline.report.tables.model import Table, TableCell, TableRow
from driftline.report.tables.papers.base import cell, columns, has_source, published, published_row
from driftline.report.tables.papers.open_world import ACCURACIES, DATA, PUBLISHED, Source, ordered, source_of, tables_of

SIZES = {("samples", "sum"): "samples", ("class-samples", "min"): "smallest class", ("class-samples", "max"): "largest"}
COUNTED = "Samples of a sequence, and of its smallest and largest class. Seeds may meet one sequence in several orders."
PUBLISHED_SIZES = (
    "Rows with a source are as published there; the one marked doubtful disagrees with the released labels."
)
OVER = (
    "In percent: means over seeds with 95% t-intervals, and below them standard deviations over seeds (n - 1); with "
    "one seed, intervals over classes or samples. The first seeds meet a sequence each, later ones other orders of it."
)
PUBLISHED_OVER = "The published means and deviations are over sequences 3 to 5."


@register("paper-table", "open-world/table-2")
def table_2(groups: list[Group]) -> list[Table]:
    """Number of samples of a sequence, in all and of a class."""
    return tables_of(groups, _sizes, "says how many samples its classes have")


@register("paper-table", "open-world/table-5")
def table_5(groups: list[Group]) -> list[Table]:
    """Accuracies as means and standard deviations over sequences."""
    return tables_of(groups, _over_sequences, "has accuracies")


def _sizes(group: Group) -> Table | None:
    """Return a row for each sequence, ours and all published ones."""
    ours = {}
    for run in group.runs:
        protocol = run.card.protocol
        if "counts" in protocol:
            counts = [protocol["counts"][c] for c in (*protocol["pretrain_classes"], *protocol["novel_classes"])]
            ours[f"sequence {protocol['sequence']}"] = (protocol["samples"], min(counts), max(counts))
    if not ours:
        return None
    rows: list[TableRow] = []
    for name in sorted({*ours, *(f"sequence {k}" for k in range(1, 6))}, key=lambda name: int(name.split()[1])):
        rows += [TableRow(name, tuple(published(float(n)) for n in ours[name]))] if name in ours else []
        rows += _published_sizes(group, name)
    notes = (COUNTED, *([PUBLISHED_SIZES] if has_source(rows) else []))
    sizes = columns(*SIZES.values(), format=format_amount)
    return Table(f"Table 2: sequences, {group.title}", "sequence", sizes, tuple(rows), notes)


def _published_sizes(group: Group, name: str) -> list[TableRow]:
    found = [n for n in numbers(group.card, DATA, name) if (n.metric, n.stat) in SIZES]
    rows: list[TableRow] = []
    for source in dict.fromkeys(n.source for n in found):
        values = {(n.metric, n.stat): n.value for n in found if n.source == source}
        cells = tuple(published(values.get(size)) for size in SIZES)
        rows += published_row(name, cells, source_note(group.card, source))
    return rows


def _over_sequences(group: Group) -> Table | None:
    found = {name: estimates(group, name) for name in ACCURACIES}
    if not any(found.values()):
        return None
    rows: list[TableRow] = []
    for label in ordered(group.methods):
        row = [found[name].get(label) for name in ACCURACIES]
        rows.append(TableRow(label, tuple(map(cell, row))))
        deviations = tuple(map(_deviation, row))
        rows += [TableRow(f"{label}, std", deviations)] if any(deviations) else []
        rows += _published_over_sequences(group, label, source_of(group, "NED Table 5", "sequences 3 to 5"))
    heads = (name.replace("-", " ") for name in ACCURACIES)
    notes = (OVER, *((PUBLISHED, PUBLISHED_OVER) if has_source(rows) else ()))
    title = f"Table 5: means and deviations over sequences, {group.title}"
    return Table(title, "method", columns(*heads), tuple(rows), notes)


def _deviation(one: Estimate | None) -> TableCell | None:
    """Return the standard deviation over seeds, which needs two of them."""
    if one is None or one.seeds < 2:
        return None
    return TableCell(Estimate(float(np.std(list(one.by_seed.values()), ddof=1)), seeds=one.seeds))


def _published_over_sequences(group: Group, label: str, source: Source) -> list[TableRow]:
    means = source.rows(group, label, ACCURACIES)
    deviations = source.rows(group, label, ACCURACIES, stat="std")
    return [*means, *(replace(row, name=f"{label}, std") for row in deviations)]
