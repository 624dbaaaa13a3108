"""The summary of a result table: the benchmark's sentence, with a caution about the trivial baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driftline import registry
from driftline.report.analysis.estimates import Estimate
from driftline.report.analysis.gains import gains
from driftline.report.analysis.result_table import ResultTable, Score
from driftline.report.analysis.trivial_baseline import not_above


@dataclass(frozen=True)
class Results:
    """A result table as `Benchmark.summary` takes it."""

    table: ResultTable

    @property
    def roles(self) -> Mapping[str, str]:
        """The role of each method, from its card."""
        return self.table.group.roles

    def scores(self, metric: str, stat: str) -> dict[str, Score]:
        """Return one column: a cell for each method that has one."""
        rows = self.table.rows
        return {row.method: cell for row in rows if (cell := self.table.cell(row.method, metric, stat))}

    def gains(self, metric: str, stat: str) -> dict[str, Estimate]:
        """Return the difference from the baseline, paired by seed, for each other method; empty without a baseline."""
        group = self.table.group
        return gains(group, group.baseline, metric, stat) if group.baseline else {}


def answer(table: ResultTable) -> str:
    """Return the benchmark's summary, with a caution where methods do not beat the trivial baseline."""
    benchmark = registry.get("benchmark", table.group.benchmark)
    return " ".join([benchmark.summary(Results(table)), *not_above(table)])
