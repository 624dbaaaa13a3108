"""The trivial baseline of a group of runs: one constant answer per run (`benchmarks.trivial_baseline`)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from driftline import registry
from driftline.record.run import Record, Run

if TYPE_CHECKING:
    from driftline.report.analysis.groups import Group
    from driftline.report.analysis.result_table import ResultTable, Score

NAME = "trivial baseline"
PROTOCOL = (
    "Trivial baseline: one constant answer per run, scored like a method. It is the most frequent class among all "
    "labels in the run's record, for numbers their mean."
)


def trivial_notes(table: ResultTable) -> list[str]:
    """Return the definition of the baseline, and the methods that do not beat it."""
    if table.trivial is None:
        return []
    return [PROTOCOL, *not_above(table)]


def not_above(table: ResultTable) -> list[str]:
    """Return a warning if the interval of a method contains the baseline in the primary metric, or is worse."""
    k = _primary(table)
    baseline = table.trivial.cells[k] if table.trivial and table.columns else None
    if baseline is None:
        return []
    column = table.columns[k]
    level = [row.method for row in table.rows if (cell := row.cells[k]) and not _beats(cell, baseline, column.better)]
    if not level:
        return []
    return [
        f"Caution: not significantly better than the trivial baseline ({column.text(baseline)}) in {column.name}, so "
        f"that other numbers mean little: {', '.join(level)}."
    ]


def _primary(table: ResultTable) -> int:
    """Return the index of the first column that the benchmark selects settings by, else 0."""
    places = {(column.metric, column.stat): k for k, column in enumerate(table.columns)}
    primary = registry.get("benchmark", table.group.benchmark).primary_metrics
    return next((places[pair] for pair in primary if pair in places), 0)


def _beats(cell: Score, baseline: Score, better: str) -> bool:
    """Return whether the whole interval of a method is better than the value of the baseline."""
    end = cell.low if better == "higher" else cell.high
    end = cell.value if np.isnan(end) else end
    return end > baseline.value if better == "higher" else end < baseline.value


def trivial_scores(group: Group) -> pd.DataFrame:
    """Return the stored scores of the baseline by seed, those of one method: labels are the same for all methods."""
    by_seed: dict[int, list[Run]] = defaultdict(list)
    for run in group.runs:
        by_seed[run.seed].append(run)
    chosen: list[Run] = []
    for runs in by_seed.values():
        method = min((group.labels[run.key] for run in runs), key=lambda name: (name not in group.ranked, name))
        chosen += [run for run in runs if group.labels[run.key] == method]
    scores = Record(chosen).trivial_scores
    if scores.empty:
        return scores
    by = scores.groupby(["seed", "metric", "stat"], sort=False)
    means = {name: (name, "mean") for name in ("value", "low", "high")}
    summary: pd.DataFrame = by.agg(**means, n=("n", "sum"), unit=("unit", "first")).reset_index()
    return summary
