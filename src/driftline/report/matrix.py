"""Methods by benchmarks: each benchmark's headline number for each method, or why there is none.

The cells come from what `driftline run matrix` wrote beside the runs, the numbers from the runs themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from driftline import registry
from driftline.checksums import read_checked
from driftline.engine.planning.matrix import FOLDER
from driftline.errors import Damaged, UserError
from driftline.metrics.comparisons import Difference, average_ranks, paired
from driftline.record import Record, Run, log
from driftline.report.groups import Group
from driftline.report.marks import BASELINE, FROZEN, ORACLE
from driftline.report.pareto import headline
from driftline.report.ranking import rank
from driftline.report.results import Cell, Column, ResultTable, by_seed, tabulate
from driftline.report.spread import differences

SHOWN = {"inputs": "inputs only", "errors": "labels of errors", "labels": "all labels"}
DEEPEST = 45  # percent of colour behind the largest difference of a column: numbers must stay readable


@dataclass(frozen=True)
class Square:
    """A method in a benchmark."""

    label: str
    """The method with the settings that it has here."""
    uses: str
    reason: str
    cell: Cell | None = None
    rank: float | None = None
    gain: Difference | None = None
    """Paired by seed with the method that stands still; none for that one itself."""
    tint: int = 0
    """How strongly the gain colours the square, from -45 to 45 percent."""

    @property
    def why(self) -> str:
        """The first sentence of the reason; the rest names other methods and benchmarks."""
        return self.reason.partition(". ")[0]


@dataclass(frozen=True)
class Head:
    """A benchmark of the matrix."""

    benchmark: str
    question: str
    reveals: str
    column: Column | None = None
    setting: str = ""
    reference: str = ""
    """The method that gains are counted from."""


@dataclass(frozen=True)
class View:
    """A matrix to look at: `squares` are by method and by benchmark."""

    heads: tuple[Head, ...]
    methods: tuple[str, ...]
    seeds: int
    squares: Mapping[tuple[str, str], Square]
    ranks: Mapping[str, float]
    """The mean rank of each method that has a number in every column in which methods compete."""

    def row(self, method: str) -> list[tuple[Head, Square]]:
        return [(head, self.squares[method, head.benchmark]) for head in self.heads]

    @cached_property
    def reasons(self) -> list[str]:
        """Why squares are empty, in a sentence, each once, in the order of reading."""
        squares = (square for method in self.methods for _, square in self.row(method))
        return list(dict.fromkeys(square.why for square in squares if square.why))

    @property
    def title(self) -> str:
        return f"{len(self.methods)} methods in {len(self.heads)} benchmarks"


def views(record: Record) -> list[View]:
    """Every matrix that these runs belong to."""
    runs = {run.key: run for run in record.runs}
    folders = dict.fromkeys(run.folder.parent.parent / FOLDER for run in record.runs)
    contents = _contents(path for folder in folders for path in sorted(folder.glob("*.json")))
    return [view(content, runs) for content in contents if any(runs.keys() & cell["keys"] for cell in content["cells"])]


def needed(record: Record) -> list[View]:
    """The same, or an error that says how to make one."""
    found = views(record)
    if not found:
        raise UserError(
            "no matrix among these runs: make one with `driftline run matrix --methods frozen,tent,ewc,ncm`"
        )
    return found


def _contents(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        try:
            yield read_checked(path)
        except Damaged as damage:
            log.warning(f"note: a matrix is left out. {damage}")


def view(content: Mapping[str, Any], runs: Mapping[str, Run]) -> View:
    """A matrix from its cells and the runs that there are."""
    heads, squares, scores, better = [], {}, {}, {}
    for said in content["benchmarks"]:
        benchmark = said["name"]
        cells = [cell for cell in content["cells"] if cell["benchmark"] == benchmark]
        head = Head(benchmark, registry.get("benchmark", benchmark).question, said["reveals"])
        table = _table(benchmark, cells, runs)
        if table:
            head = _head(head, table)
            known = by_seed(table.group.scores, head.column) if head.column else {}
            scores[benchmark] = {method: dict(values) for method, values in known.items() if method != ORACLE}
            better[benchmark] = head.column.better if head.column else "higher"
        heads.append(head)
        squares.update(_squares(head, cells, table, len(content["seeds"])))
    methods = tuple(content["methods"])
    return View(tuple(heads), methods, len(content["seeds"]), squares, mean_ranks(scores, better))


def _table(benchmark: str, cells: Sequence[Mapping[str, Any]], runs: Mapping[str, Run]) -> ResultTable | None:
    """The runs of a column as one table, in which a method has the matrix's name for it."""
    labels = {key: cell["method"] for cell in cells for key in cell["keys"] if key in runs}
    if not labels:
        return None
    return tabulate(Group(benchmark, tuple(runs[key] for key in labels), labels))


def _head(head: Head, table: ResultTable) -> Head:
    card = table.group.card["run"]
    reference = next((name for name in (FROZEN, BASELINE) if name in table.group.methods), "")
    setting = f"{card['data']['name']}, {card['model']['name']}"
    column = headline(table) or next(iter(table.columns), None)
    return replace(head, column=column, setting=setting, reference=reference)


def _squares(
    head: Head, cells: Sequence[Mapping[str, Any]], table: ResultTable | None, seeds: int
) -> dict[tuple[str, str], Square]:
    found = {}
    for cell in cells:
        number = None
        if table and head.column:
            number = table.cell(cell["method"], head.column.metric, head.column.stat)
        reason = cell["reason"] or ("" if number else "not finished, or without a score")
        found[cell["method"], head.benchmark] = Square(cell["label"], cell["uses"], reason, number)
    if table is None or head.column is None:
        return found
    sign = 1 if head.column.better == "higher" else -1
    ranks, gains = _ranks(found, head.column, seeds), _gains(table, head)
    largest = max((abs(gain.value) for gain in gains.values() if np.isfinite(gain.value)), default=0) or 1
    return {
        place: replace(
            square,
            rank=ranks.get(place[0]),
            gain=gains.get(place[0]),
            tint=round(DEEPEST * sign * gains[place[0]].value / largest) if place[0] in gains else 0,
        )
        for place, square in found.items()
    }


def _ranks(squares: Mapping[tuple[str, str], Square], column: Column, seeds: int) -> dict[str, float]:
    """Ranks of means; a method that lacks a seed, and the oracle, which is shown more, have none."""
    values = {
        method: square.cell.value
        for (method, _), square in squares.items()
        if square.cell and square.cell.seeds == seeds and method != ORACLE
    }
    return dict(zip(values, average_ranks(list(values.values()), column.better).tolist(), strict=True))


def _gains(table: ResultTable, head: Head) -> dict[str, Difference]:
    """How far each method is from the one that stands still, on common seeds."""
    assert head.column is not None
    known = by_seed(table.group.scores, head.column)
    still = known.get(head.reference)
    if not still:
        return {}
    found = {m: paired(differences(values, still)) for m, values in known.items() if m != head.reference}
    return {method: gain for method, gain in found.items() if np.isfinite(gain.value)}


def mean_ranks(scores: Mapping[str, Mapping[str, Mapping[int, float]]], better: Mapping[str, str]) -> dict[str, float]:
    """By method, over the columns; of methods that are in every column with two methods or more.

    >>> column = {"a": {0: 0.9}, "b": {0: 0.8}, "c": {0: 0.7}}
    >>> mean_ranks({"x": column, "y": {"a": {0: 0.5}, "b": {0: 0.6}}}, {"x": "higher", "y": "higher"})
    {'a': 1.5, 'b': 1.5}
    """
    found = rank(scores)
    if found is None:
        return {}
    each = [average_ranks(row, better[title]) for title, row in zip(found.seeds, found.means, strict=True)]
    return dict(zip(found.methods, np.mean(each, axis=0).tolist(), strict=True))
