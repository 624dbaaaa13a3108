"""The trivial baseline of a group of runs: one constant answer per run, scored like a method.

The constant is the most frequent class among all labels in the run's record, or their mean for numbers: with hindsight,
so no constant that a learner could choose in time is expected to do better. The answers of a run are replaced by it and
scored with the metrics of the benchmark, so every benchmark has this baseline.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from driftline import registry
from driftline.record.run import Run
from driftline.tasks import Classification, Regression, Task, TextToText
from driftline.texts import split_answers

if TYPE_CHECKING:
    from driftline.report.analysis.groups import Group
    from driftline.report.analysis.result_table import ResultTable, Score

NAME = "trivial baseline"
PROTOCOL = (
    "Trivial baseline: one constant answer per run, scored like a method. It is the most frequent class among all "
    "labels in the run's record, for numbers their mean."
)


@dataclass(frozen=True)
class ConstantRun(Run):
    """A run with every answer replaced by a constant."""

    @cached_property
    def labels(self) -> pd.Series:
        """The label of each recorded example, once; empty if the record has none."""
        tables = [super(ConstantRun, self).table(name) for name in ("answers", "probes")]
        found = [table[["id", "truth"]] for table in tables if {"id", "truth"} <= set(table)]
        return pd.concat(found).drop_duplicates("id")["truth"] if found else pd.Series(dtype=object)

    @cached_property
    def answer(self) -> int | float | str:
        if isinstance(self._task, Regression):
            return float(self.labels.mean())
        counts = self.labels.value_counts()
        most = counts.index[counts == counts.max()].min()
        return (split_answers(most) or ("",))[0] if isinstance(self._task, TextToText) else most

    def table(self, name: str) -> pd.DataFrame:
        """Return `answers` or `probes` with the constant as prediction; other tables are empty."""
        frame = super().table(name) if name in ("answers", "probes") else pd.DataFrame()
        if "truth" not in frame:
            return frame
        known, place = np.unique(frame["truth"].to_numpy(), return_inverse=True)
        right = self._task.correct(np.full(len(known), self.answer, dtype=known.dtype), known)[place]
        constant = {"distance": 0.0} if "distance" in frame else {}
        return frame.assign(prediction=self.answer, correct=right, confidence=1.0, **constant)

    @cached_property
    def _task(self) -> Task:
        data = self.card.data
        if data.kind == "Regression":
            scale = re.search(r"scale=([-+.\de]+)", data.task)
            return Regression(scale=float(scale[1]) if scale else 1.0)
        return TextToText() if data.kind == "TextToText" else Classification(())


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
    """Return the summary scores of the baseline by seed; empty without labels."""
    benchmark = registry.get("benchmark", group.card.run.benchmark)
    rows = [benchmark().score(run).assign(seed=run.seed) for run in _constants(group) if len(run.labels)]
    if not rows:
        return pd.DataFrame()
    scores = pd.concat(rows, ignore_index=True)
    by = scores[scores["stat"] != "each"].groupby(["seed", "metric", "stat"], sort=False)
    means = {name: (name, "mean") for name in ("value", "low", "high")}
    summary: pd.DataFrame = by.agg(**means, n=("n", "sum"), unit=("unit", "first")).reset_index()
    return summary


def _constants(group: Group) -> Iterator[ConstantRun]:
    """Yield for each seed the runs of one method: labels are the same for all methods."""
    by_seed: dict[int, list[Run]] = defaultdict(list)
    for run in group.runs:
        by_seed[run.seed].append(run)
    for runs in by_seed.values():
        method = min((group.labels[run.key] for run in runs), key=lambda name: (name not in group.ranked, name))
        yield from (ConstantRun(run.folder) for run in runs if group.labels[run.key] == method)
