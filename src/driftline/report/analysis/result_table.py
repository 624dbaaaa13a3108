"""The results of a group: methods by headline metrics, each score with its interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from driftline import registry
from driftline.metrics import title
from driftline.record.card import Card
from driftline.report.analysis.aggregate import best_or_tied, clip_interval, mean_over_seeds
from driftline.report.analysis.estimates import Estimate, bounds, is_share
from driftline.report.analysis.groups import Group
from driftline.report.analysis.published import published_values, source_note
from driftline.report.analysis.trivial_baseline import NAME, trivial_scores
from driftline.report.format import format_value
from driftline.store.labels import read_label
from driftline.types import JsonObject

UNSUMMARIZED = ("each", "false-alarm")  # statistics that are not columns of a table


@dataclass(frozen=True)
class Column:
    """A headline metric under one statistic."""

    metric: str
    stat: str
    formula: str
    better: str
    settings: JsonObject
    interval_over: str = "test examples"
    """What the interval of a single run is over."""

    @property
    def share(self) -> bool:
        return is_share(self.metric)

    @property
    def word(self) -> str:
        return title(self.metric)

    @property
    def name(self) -> str:
        return f"{self.word}, {self.stat}"

    @property
    def arrow(self) -> str:
        return "↑" if self.better == "higher" else "↓"

    @property
    def title(self) -> str:
        return f"{self.name} {self.arrow}{' (%)' if self.share else ''}"

    def is_called(self, name: str) -> bool:
        """Return whether a user means this column by `METRIC` or `METRIC:STAT`."""
        return name in (self.metric, f"{self.metric}:{self.stat}")

    def text(self, score: Estimate) -> str:
        """Return a score of this column as text for a sentence."""
        return f"{format_value(score.value, self.share)}{'%' if self.share else ''}"


@dataclass(frozen=True)
class Score(Estimate):
    """The estimate of a headline metric."""

    best: bool = False
    """Best of its column, or not significantly worse."""
    false_alarm: float = math.nan
    """Of a horizon: the share of models that would seem to drift if nothing changed."""


@dataclass(frozen=True)
class Row:
    """A method: a score per column (None where it has none), compute in GMAC, number of seeds.

    A published row has no seeds.
    """

    method: str
    cells: tuple[Score | None, ...]
    gmac: float | None
    seeds: int
    source: str = ""
    """Of a published row: the paper, and whether its runs were larger."""


@dataclass(frozen=True)
class ResultTable:
    """The results of a group of runs."""

    group: Group
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    published: dict[str, tuple[Row, ...]]
    trivial: Row | None = None
    """The trivial baseline; None if the record has no labels."""

    def all_rows(self) -> list[Row]:
        """Return the row of each method, followed by published rows, and the trivial baseline last."""
        rows = [line for row in self.rows for line in (row, *self.published[row.method])]
        return [*rows, self.trivial] if self.trivial else rows

    def cells(self) -> list[Score]:
        """Return the scores of all methods."""
        return [cell for row in self.rows for cell in row.cells if cell]

    def cell(self, method: str, metric: str, stat: str) -> Score | None:
        """Return the score of a method, if there is one."""
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                if (row.method, column.metric, column.stat) == (method, metric, stat):
                    return cell
        return None

    def scores(self, column: Column) -> dict[str, Score]:
        """Return the scores of a column by method."""
        cells = {row.method: self.cell(row.method, column.metric, column.stat) for row in self.rows}
        return {method: cell for method, cell in cells.items() if cell}


def tabulate(group: Group, metrics: Sequence[str] = ()) -> ResultTable:
    """Return the headline metrics of a group's benchmark by method, or these metrics."""
    scores = group.summary
    columns = selected_columns(group, metrics) if metrics else headline_columns(group)
    summary: dict[Any, Any] = mean_over_seeds(scores, ["method", "metric", "stat"]).to_dict("index")
    ranked = scores[scores["method"].isin(group.ranked)]
    best = [best_or_tied(scores_by_seed(ranked, column), column.better) for column in columns]
    rows = []
    for method in group.methods:
        cells = (_score(summary, method, column, method in top) for column, top in zip(columns, best, strict=True))
        rows.append(
            Row(method, tuple(cells), mean_gmac(group, method), len({run.seed for run in group.runs_of(method)}))
        )
    published = {method: tuple(_published(group, method, columns)) for method in group.methods}
    return ResultTable(group, columns, tuple(rows), published, _trivial(group, columns))


def _trivial(group: Group, columns: tuple[Column, ...]) -> Row | None:
    scores = trivial_scores(group)
    if scores.empty:
        return None
    summary: dict[Any, Any] = mean_over_seeds(scores.assign(method=NAME), ["method", "metric", "stat"]).to_dict("index")
    cells = (_score(summary, NAME, column, best=False) for column in columns)
    return Row(NAME, tuple(cells), None, scores["seed"].nunique())


def headline_columns(group: Group) -> tuple[Column, ...]:
    """Return the headline metrics of a group's benchmark that its runs have; protocols have different ones."""
    benchmark = registry.get("benchmark", group.benchmark)
    known = group.score_names.keys()
    return tuple(
        _column(metric, stat, group.card) for metric, stat in benchmark.headline_metrics if (metric, stat) in known
    )


def selected_columns(group: Group, metrics: Sequence[str]) -> tuple[Column, ...]:
    """Return the metrics that users call `METRIC` or `METRIC:STAT`; if one is a headline metric, its headline stats."""
    headline = [(column.metric, column.stat) for column in headline_columns(group)]
    pairs: list[tuple[str, str]] = []
    for name in metrics:
        called = [
            pair for pair in group.score_names if name in (pair[0], ":".join(pair)) and pair[1] not in UNSUMMARIZED
        ]
        pairs += [pair for pair in called if pair in headline] or called
    return tuple(_column(*pair, group.card) for pair in dict.fromkeys(pairs))


def metric_names(group: Group) -> set[str]:
    """Return the metrics that a table of a group can show."""
    return set(group.summary.loc[~group.summary["stat"].isin(UNSUMMARIZED), "metric"])


def scores_by_seed(scores: pd.DataFrame, column: Column) -> dict[str, dict[int, float]]:
    """Return the values of a column, by method and by seed."""
    rows = scores[(scores["metric"] == column.metric) & (scores["stat"] == column.stat)]
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for method, seed, value in zip(rows["method"], rows["seed"], rows["value"], strict=True):
        values[method][seed] = value
    return values


def mean_gmac(group: Group, method: str, *, uncached: bool = False) -> float | None:
    """Return the mean compute of a run in 10^9 multiply-accumulates, or None if it was not counted.

    `uncached` adds the forward passes that cached features saved.
    """
    total = 0
    runs = group.runs_of(method)
    for compute in (run.compute for run in runs):
        if compute.macs is None:
            return None
        total += compute.macs + (compute.cached_macs or 0 if uncached else 0)
    return total / len(runs) / 1e9


def training_gmac(group: Group) -> dict[str, float]:
    """Return the compute of the methods that train by gradients, except upper bounds; as in the column GMAC."""
    found = {method: mean_gmac(group, method) for method in group.methods if group.roles[method] != "upper-bound"}
    return {
        method: gmac
        for method, gmac in found.items()
        if gmac is not None and any(run.compute.backward_macs for run in group.runs_of(method))
    }


def _published(group: Group, method: str, columns: tuple[Column, ...]) -> list[Row]:
    """Return the published values of a method, a row per source."""
    rows = []
    run = group.runs_of(method)[0]
    for source, values in published_values(group.card, run.method if read_label(run)[0] else method).items():
        cells = [values.get((column.metric, column.stat)) for column in columns]
        if any(value is not None for value in cells):
            note = source_note(group.card, source)
            rows.append(Row(f"{method} in {note}", tuple(map(_published_score, cells)), None, 0, note))
    return rows


def _published_score(value: float | None) -> Score | None:
    return None if value is None else Score(value, interval="not printed", unit="as printed")


def _column(metric: str, stat: str, card: Card) -> Column:
    registered = registry.get("metric", metric)
    settings = {key: value for key, value in card.metrics.get(metric, {}).items() if key != "formula"}
    given = {key: value for key, value in settings.items() if value is not None}
    over = getattr(registry.get("benchmark", card.run.benchmark), "interval_over", Column.interval_over)
    return Column(metric, stat, registered.formula, registered.better, given, over)


def _score(summary: dict[Any, JsonObject], method: str, column: Column, best: bool) -> Score | None:
    row = summary.get((method, column.metric, column.stat))
    if row is None or not math.isfinite(row["value"]):
        return None
    return Score(
        value=row["value"],
        **clip_interval(row["low"], row["high"], *bounds(column.metric))._asdict(),
        interval="seeds" if row["interval"] == "seeds" else column.interval_over,
        seeds=int(row["seeds"]),
        n=int(row["n"]),
        unit=row["unit"],
        best=best,
        false_alarm=summary.get((method, column.metric, "false-alarm"), {}).get("value", math.nan),
    )
