"""The tables of In the Wild (NED) about its sequences.

`open-world/table-2`: how many samples a sequence has, in all and of a class. `open-world/table-5`: accuracies as means
and standard deviations over sequences.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driftline.report.analysis.estimates import Entry, Measured, measured
from driftline.report.analysis.groups import Group
from driftline.report.analysis.published import cited, numbers
from driftline.report.tables.paper_grid import Grid, Line
from driftline.report.tables.papers.base import Layout, entry
from driftline.report.tables.papers.open_world import (
    ACCURACIES,
    BENCHMARK,
    DATA,
    PRINTED,
    Source,
    ordered,
    some,
    source_of,
)

SIZES = {("samples", "sum"): "samples", ("class-samples", "min"): "smallest class", ("class-samples", "max"): "largest"}
COUNTED = "Samples of a sequence, and of its smallest and largest class. Seeds may meet one sequence in several orders."
PRINTED_SIZES = "Rows with a source are as printed there; the one marked doubtful disagrees with the released labels."
OVER = (
    "In percent: means over seeds with 95% t-intervals, and under them standard deviations over seeds (n - 1); with "
    "one seed, intervals over classes or samples. The first seeds meet a sequence each, later ones other orders of it."
)
PRINTED_OVER = "The printed means and deviations are over sequences 3 to 5."


def _sizes(group: Group) -> Grid | None:
    """Table 2: a row for each sequence, ours and all printed ones."""
    ours = {}
    for run in group.runs:
        protocol = run.card["protocol"]
        if "counts" in protocol:
            counts = [protocol["counts"][c] for c in (*protocol["pretrain_classes"], *protocol["novel_classes"])]
            ours[f"sequence {protocol['sequence']}"] = (protocol["samples"], min(counts), max(counts))
    if not ours:
        return None
    lines = []
    for name in sorted({*ours, *(f"sequence {k}" for k in range(1, 6))}, key=lambda name: int(name.split()[1])):
        lines += [Line(name, tuple(Entry(float(n)) for n in ours[name]))] if name in ours else []
        lines += _printed_sizes(group, name)
    title, said = f"Table 2: sequences, {group.title}", (PRINTED_SIZES,) if any(line.source for line in lines) else ()
    return Grid(title, "sequence", tuple(SIZES.values()), tuple(lines), (COUNTED, *said), share=False)


def _printed_sizes(group: Group, name: str) -> list[Line]:
    found = [n for n in numbers(group.card, DATA, name) if (n.metric, n.stat) in SIZES]
    lines = []
    for source in dict.fromkeys(n.source for n in found):
        theirs = {(n.metric, n.stat): n.value for n in found if n.source == source}
        beside = tuple(Entry(theirs[size]) if size in theirs else None for size in SIZES)
        lines.append(Line(name, beside, cited(group.card, source)))
    return lines


def _over_sequences(group: Group) -> Grid | None:
    """Table 5."""
    cells = {name: measured(group, name) for name in ACCURACIES}
    if not any(cells.values()):
        return None
    lines = []
    for label in ordered(group.methods):
        row = [cells[name].get(label) for name in ACCURACIES]
        lines.append(Line(label, tuple(entry(cell, None) for cell in row)))
        deviations = tuple(_deviation(cell) for cell in row)
        lines += [Line(f"{label}, std", deviations)] if any(deviations) else []
        lines += _printed_over_sequences(group, label, source_of(group, "NED Table 5", "sequences 3 to 5"))
    heads = tuple(name.replace("-", " ") for name in ACCURACIES)
    said = (PRINTED, PRINTED_OVER) if any(line.source for line in lines) else ()
    title = f"Table 5: means and deviations over sequences, {group.title}"
    return Grid(title, "method", heads, tuple(lines), (OVER, *said))


def _deviation(cell: Measured | None) -> Entry | None:
    """The standard deviation over seeds, which takes two of them."""
    if cell is None or len(cell.by_seed) < 2:
        return None
    return Entry(float(np.std(list(cell.by_seed.values()), ddof=1)), seeds=len(cell.by_seed))


def _printed_over_sequences(group: Group, label: str, source: Source) -> list[Line]:
    means = source.lines(group, label, ACCURACIES)
    deviations = source.lines(group, label, ACCURACIES, stat="std")
    return [*means, *(replace(line, name=f"{label}, std") for line in deviations)]


LAYOUTS: dict[str, Layout] = {
    f"{BENCHMARK}/table-2": lambda found: some(found, _sizes, "says how many samples its classes have"),
    f"{BENCHMARK}/table-5": lambda found: some(found, _over_sequences, "has accuracies"),
}
