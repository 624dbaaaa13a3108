"""Methods by benchmarks: the primary metric of each benchmark for each method, or the reason why it is missing.

The cells come from the file that `driftline run matrix` writes next to the runs, the numbers from the runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from driftline import registry
from driftline.engine.planning.matrix import FOLDER
from driftline.errors import DamagedFile, UserError
from driftline.io.checksums import read_checked
from driftline.metrics.significance import Difference, average_ranks, paired_t_test
from driftline.record.run import Record, Run, log
from driftline.report.analysis.aggregate import paired_differences
from driftline.report.analysis.groups import Group
from driftline.report.analysis.pareto import primary_column
from driftline.report.analysis.ranking import rank, ranked_scores
from driftline.report.analysis.result_table import Column, ResultTable, Score, scores_by_seed, tabulate
from driftline.types import JsonObject, Settings

UNFINISHED = "not finished, or without a score"


@dataclass(frozen=True)
class MatrixCell:
    """A method in a benchmark."""

    label: str
    """The method with its settings in this benchmark."""
    uses: str
    reason: str
    """Why it has no score."""
    brief_reason: str = ""
    """The same in a few words."""
    score: Score | None = None
    rank: float | None = None
    gain: Difference | None = None
    """Paired by seed with the baseline; None for the baseline itself."""
    certain: int = 0
    """1 or -1 if the interval of the gain excludes 0, by whether it is an improvement; else 0."""
    cannot_run: bool = False
    """Whether it needs what the benchmark does not give, such as labels."""

    @property
    def short_reason(self) -> str:
        """The first sentence of the reason."""
        return self.reason.partition(". ")[0]


@dataclass(frozen=True)
class MatrixColumn:
    """A benchmark of the matrix, with its data."""

    benchmark: str
    """The name of the column, which is the benchmark's unless the recipe gave it another one."""
    question: str
    reveals: str
    metric: Column | None = None
    setting: str = ""
    baseline: str = ""
    """The method that gains are relative to."""
    group: Group | None = None
    """Its runs."""


@dataclass(frozen=True)
class MatrixView:
    """A matrix of methods and benchmarks; `cells` are by method and benchmark."""

    columns: tuple[MatrixColumn, ...]
    methods: tuple[str, ...]
    seeds: int
    cells: Mapping[tuple[str, str], MatrixCell]
    ranks: Mapping[str, float]
    """Mean rank of each method that has a score in every column with two methods or more."""
    keys: frozenset[str] = frozenset()
    """The runs of its cells."""

    def is_bold(self, column: MatrixColumn, cell: MatrixCell) -> bool:
        """Return whether a cell is best or tied in a column in which some method is not."""
        found = [self.cells[method, column.benchmark].score for method in self.methods]
        return bool(cell.score and cell.score.best) and any(score and not score.best for score in found)

    def row(self, method: str) -> list[tuple[MatrixColumn, MatrixCell]]:
        return [(column, self.cells[method, column.benchmark]) for column in self.columns]

    @cached_property
    def reasons(self) -> list[str]:
        """The reasons for missing scores, each once, in reading order."""
        cells = (cell for method in self.methods for _, cell in self.row(method))
        return list(dict.fromkeys(cell.short_reason for cell in cells if cell.short_reason))

    @property
    def title(self) -> str:
        plain = {column.benchmark for column in self.columns} <= set(registry.names("benchmark"))
        return f"{len(self.methods)} methods in {len(self.columns)} {'benchmarks' if plain else 'settings'}"


def views(record: Record) -> list[MatrixView]:
    """Return every matrix that the runs of a record belong to."""
    runs = {run.key: run for run in record.runs}
    folders = dict.fromkeys(run.folder.parent.parent / FOLDER for run in record.runs)
    contents = _contents(path for folder in folders for path in sorted(folder.glob("*.json")))
    return [view(content, runs) for content in contents if any(runs.keys() & cell["keys"] for cell in content["cells"])]


def require_views(record: Record) -> list[MatrixView]:
    """Return every matrix of a record, or raise an error if there is none."""
    found = views(record)
    if not found:
        raise UserError(
            "no matrix among these runs: make one with `driftline run matrix --methods frozen,tent,ewc,ncm`"
        )
    return found


def _contents(paths: Iterable[Path]) -> Iterator[JsonObject]:
    for path in paths:
        try:
            yield read_checked(path)
        except DamagedFile as damage:
            log.warning(f"note: a matrix is left out. {damage}")


def view(content: Settings, runs: Mapping[str, Run]) -> MatrixView:
    """Return a matrix from the content of its file and the runs that exist."""
    columns, placed, scores, better = [], {}, {}, {}
    for described in sorted(content["benchmarks"], key=lambda one: registry.get("benchmark", _benchmark(one)).place):
        benchmark = described["name"]
        cells = [cell for cell in content["cells"] if cell["benchmark"] == benchmark]
        question = registry.get("benchmark", _benchmark(described)).question
        column = MatrixColumn(benchmark, question, described["reveals"])
        table = _table(benchmark, cells, runs)
        if table:
            column = _column(column, table)
            scores[benchmark] = ranked_scores(table.group, column.metric) if column.metric else {}
            better[benchmark] = column.metric.better if column.metric else "higher"
        columns.append(column)
        placed.update(_cells(column, cells, table, len(content["seeds"])))
    methods = tuple(content["methods"])
    keys = frozenset(key for cell in content["cells"] for key in cell["keys"])
    return MatrixView(tuple(columns), methods, len(content["seeds"]), placed, mean_ranks(scores, better), keys)


def _benchmark(described: Settings) -> str:
    """Return the benchmark of a column."""
    return str(described.get("benchmark", described["name"]))


def _table(benchmark: str, cells: Iterable[Settings], runs: Mapping[str, Run]) -> ResultTable | None:
    """Return the results of a column, with methods named as in the matrix."""
    labels = {key: cell["method"] for cell in cells for key in cell["keys"] if key in runs}
    if not labels:
        return None
    return tabulate(Group(benchmark, tuple(runs[key] for key in labels), labels))


def _column(column: MatrixColumn, table: ResultTable) -> MatrixColumn:
    run = table.group.card.run
    baseline = table.group.baseline or ""
    setting = f"{run.data.display_name}, {run.model.display_name}"
    metric = primary_column(table) or next(iter(table.columns), None)
    return replace(column, metric=metric, setting=setting, baseline=baseline, group=table.group)


def _cells(
    column: MatrixColumn, cells: Sequence[Settings], table: ResultTable | None, seeds: int
) -> dict[tuple[str, str], MatrixCell]:
    scores = table.scores(column.metric) if table and column.metric else {}
    found = {}
    for cell in cells:
        score = scores.get(cell["method"])
        reason = cell["reason"] or ("" if score else UNFINISHED)
        found[cell["method"], column.benchmark] = MatrixCell(
            cell["label"], cell["uses"], reason, _brief_reason(cell), score, cannot_run=bool(cell.get("lacks"))
        )
    if table is None or column.metric is None:
        return found
    sign = 1 if column.metric.better == "higher" else -1
    ranks, gains = _ranks(found, table.group, column.metric, seeds), _gains(table, column.metric, column.baseline)
    return {
        place: replace(
            cell,
            rank=ranks.get(place[0]),
            gain=gains.get(place[0]),
            certain=_certain(gains.get(place[0]), sign),
        )
        for place, cell in found.items()
    }


def _brief_reason(cell: Settings) -> str:
    """Return in a few words why a cell has no score.

    >>> _brief_reason({"keys": [], "reason": "er needs labels of errors, and ...", "lacks": "labels of errors"})
    'needs labels of errors'
    >>> _brief_reason({"keys": ["4f1c"], "reason": ""})
    'no score'
    """
    if cell.get("lacks"):
        return f"needs {cell['lacks']}"
    if not cell["reason"]:
        return "no score"
    return "failed" if cell["keys"] else "cannot run"


def _certain(gain: Difference | None, sign: int) -> int:
    """Return the direction of a gain whose interval excludes 0."""
    if gain is None or not np.isfinite(gain.low) or gain.low <= 0 <= gain.high:
        return 0
    return sign if gain.value > 0 else -sign


def _ranks(cells: Mapping[tuple[str, str], MatrixCell], group: Group, metric: Column, seeds: int) -> dict[str, float]:
    """Return the ranks of means; a method that lacks a seed and the oracle, which sees more labels, are not ranked."""
    values = {
        method: cell.score.value
        for (method, _), cell in cells.items()
        if cell.score and cell.score.seeds == seeds and method in group.ranked
    }
    return dict(zip(values, average_ranks(list(values.values()), metric.better).tolist(), strict=True))


def _gains(table: ResultTable, metric: Column, baseline: str) -> dict[str, Difference]:
    """Return the difference of each method from the baseline, on common seeds."""
    scores = scores_by_seed(table.group.summary, metric)
    base = scores.get(baseline)
    if not base:
        return {}
    gains = {m: paired_t_test(paired_differences(values, base)) for m, values in scores.items() if m != baseline}
    return {method: gain for method, gain in gains.items() if np.isfinite(gain.value)}


def mean_ranks(scores: Mapping[str, Mapping[str, Mapping[int, float]]], better: Mapping[str, str]) -> dict[str, float]:
    """Return the mean rank over columns of each method that is in every column with two methods or more.

    >>> column = {"a": {0: 0.9}, "b": {0: 0.8}, "c": {0: 0.7}}
    >>> mean_ranks({"x": column, "y": {"a": {0: 0.5}, "b": {0: 0.6}}}, {"x": "higher", "y": "higher"})
    {'a': 1.5, 'b': 1.5}
    """
    ranking = rank(scores)
    if ranking is None:
        return {}
    ranks = ranking.ranks([better[title] for title in ranking.seeds])
    return dict(zip(ranking.methods, ranks.mean(axis=0).tolist(), strict=True))
