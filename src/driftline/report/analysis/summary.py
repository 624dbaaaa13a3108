"""The summary of a result table: the benchmark's sentence, with a caution about the trivial baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from driftline import registry
from driftline.benchmarks.answer import AlongStream, Answer
from driftline.report.analysis.curves import time_names
from driftline.report.analysis.estimates import Estimate, estimates
from driftline.report.analysis.events import marks_note
from driftline.report.analysis.gains import gains
from driftline.report.analysis.result_table import ResultTable, Score
from driftline.report.analysis.trivial_baseline import not_above
from driftline.types import JsonObject


@dataclass(frozen=True)
class Results:
    """A result table as `Benchmark.summary` and `Benchmark.answer` take it."""

    table: ResultTable

    @property
    def roles(self) -> Mapping[str, str]:
        """The role of each method, from its card."""
        return self.table.group.roles

    @property
    def ranked(self) -> list[str]:
        """The methods that know no more than the others."""
        return sorted(self.table.group.ranked)

    @property
    def uses_labels(self) -> frozenset[str]:
        """The methods that learn from labels."""
        return self.table.group.uses_labels

    @property
    def times(self) -> list[str]:
        """Names of the periods or steps."""
        return time_names(self.table.group)

    @property
    def gmac(self) -> dict[str, float]:
        """Compute of each method whose compute was counted."""
        return {row.method: row.gmac for row in self.table.rows if row.gmac is not None}

    @property
    def options(self) -> JsonObject:
        """Options of the benchmark."""
        return self.table.group.options

    @property
    def protocol(self) -> JsonObject:
        """The protocol on the card."""
        return self.table.group.card.protocol

    def scores(self, metric: str, stat: str) -> dict[str, Score]:
        """Return one column: a cell for each method that has one."""
        rows = self.table.rows
        return {row.method: cell for row in rows if (cell := self.table.cell(row.method, metric, stat))}

    def gains(self, metric: str, stat: str) -> dict[str, Estimate]:
        """Return the difference from the baseline, paired by seed, for each other method; empty without a baseline."""
        group = self.table.group
        return gains(group, group.baseline, metric, stat) if group.baseline else {}

    def by_seed(self, metric: str, stat: str) -> dict[str, Mapping[int, float]]:
        """Return one column by method and seed."""
        return {method: one.by_seed for method, one in estimates(self.table.group, metric, stat).items()}

    def grid(self, metric: str, method: str) -> dict[tuple[str, str], dict[int, float]]:
        """Return a metric of two times by seed."""
        scores = self.table.group.scores
        rows = scores[(scores["metric"] == metric) & (scores["stat"] == "each") & (scores["method"] == method)]
        rows = rows[rows["tau"].notna() & rows["value"].notna()]
        found: dict[tuple[str, str], dict[int, float]] = {}
        for time, tau, seed, value in zip(rows["time"], rows["tau"], rows["seed"], rows["value"], strict=True):
            found.setdefault((time, tau), {})[int(seed)] = float(value)
        return found


def answer(table: ResultTable) -> str:
    """Return the benchmark's summary, with a caution where methods do not beat the trivial baseline."""
    benchmark = registry.get("benchmark", table.group.benchmark)
    return " ".join([benchmark.summary(Results(table)), *not_above(table)])


def front_answer(table: ResultTable) -> Answer | None:
    """Return the benchmark's answer for the front page of a report."""
    benchmark = registry.get("benchmark", table.group.benchmark)
    found: Answer | None = benchmark.answer(Results(table))
    if found and isinstance(found.chart, AlongStream):
        return replace(found, source=f"{found.source}{marks_note(table.group, [found.method])}")
    return found
