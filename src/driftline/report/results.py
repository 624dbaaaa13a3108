"""The result of a group as a table: methods by headline metrics, every number with its interval."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from driftline import registry
from driftline.metrics import title
from driftline.report.beside import cited, printed
from driftline.report.groups import Group
from driftline.report.spread import cut, leaders, over_seeds
from driftline.report.trivial import NAME, trivial_scores

NONE = "–"


@dataclass(frozen=True)
class Column:
    """A headline metric under one statistic."""

    metric: str
    stat: str
    formula: str
    better: str
    settings: dict[str, Any]
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

    def text(self, cell: Cell) -> str:
        """Return a number of this column as it stands in a sentence."""
        return f"{shown(cell.value, self.share)}{'%' if self.share else ''}"


@dataclass(frozen=True)
class Cell:
    """A number over seeds, and all that is needed to believe it."""

    value: float
    low: float
    high: float
    interval: str
    seeds: int
    n: int
    unit: str
    leads: bool
    false_alarm: float = math.nan
    """Of a horizon: the share of models that would seem to drift if nothing changed."""


@dataclass(frozen=True)
class Row:
    """A method: a cell per column (None where it has no score), its compute in GMAC, its seeds.

    A published row has no seeds of ours.
    """

    method: str
    cells: tuple[Cell | None, ...]
    gmac: float | None
    seeds: int


@dataclass(frozen=True)
class ResultTable:
    """What a group of runs came to."""

    group: Group
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    published: dict[str, tuple[Row, ...]]
    trivial: Row | None = None
    """The trivial baseline; none if the record has no labels."""

    def lines(self) -> list[Row]:
        """Each method's row, followed by what papers printed for it; the trivial baseline comes last."""
        rows = [line for row in self.rows for line in (row, *self.published[row.method])]
        return [*rows, self.trivial] if self.trivial else rows

    def cells(self) -> list[Cell]:
        """All cells that hold a number."""
        return [cell for row in self.rows for cell in row.cells if cell]

    def cell(self, method: str, metric: str, stat: str) -> Cell | None:
        """One method's number for a metric, if there is one."""
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                if (row.method, column.metric, column.stat) == (method, metric, stat):
                    return cell
        return None


def tabulate(group: Group) -> ResultTable:
    """The headline metrics of the group's benchmark, by method."""
    scores, columns = group.scores[group.scores["stat"] != "each"], headline(group)
    summary: dict[Any, Any] = over_seeds(scores, ["method", "metric", "stat"]).to_dict("index")
    fair = scores[scores["method"].isin(group.competing)]  # what knows more than the others cannot lead them
    leading = [leaders(by_seed(fair, column), column.better) for column in columns]
    rows = []
    for method in group.methods:
        cells = (
            _cell(summary, (method, column.metric, column.stat), column, method in best)
            for column, best in zip(columns, leading, strict=True)
        )
        rows.append(Row(method, tuple(cells), _gmac(group, method), len({run.seed for run in group.runs_of(method)})))
    beside = {method: tuple(_published(group, method, columns)) for method in group.methods}
    return ResultTable(group, columns, tuple(rows), beside, _trivial(group, columns))


def _trivial(group: Group, columns: tuple[Column, ...]) -> Row | None:
    scores = trivial_scores(group)
    if scores.empty:
        return None
    summary: dict[Any, Any] = over_seeds(scores.assign(method=NAME), ["method", "metric", "stat"]).to_dict("index")
    cells = (_cell(summary, (NAME, column.metric, column.stat), column, leads=False) for column in columns)
    return Row(NAME, tuple(cells), None, scores["seed"].nunique())


def headline(group: Group) -> tuple[Column, ...]:
    """The headline metrics of the group's benchmark that its runs know: protocols have different ones."""
    benchmark = registry.get("benchmark", group.card["run"]["benchmark"])
    known = set(zip(group.scores["metric"], group.scores["stat"], strict=True))
    return tuple(_column(metric, stat, group.card) for metric, stat in benchmark.headline if (metric, stat) in known)


def by_seed(scores: pd.DataFrame, column: Column) -> dict[str, dict[int, float]]:
    """The numbers of a column, by method and by seed."""
    rows = scores[(scores["metric"] == column.metric) & (scores["stat"] == column.stat)]
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for method, seed, value in zip(rows["method"], rows["seed"], rows["value"], strict=True):
        found[method][seed] = value
    return found


def _published(group: Group, method: str, columns: tuple[Column, ...]) -> list[Row]:
    """What papers printed for this method, a row per source."""
    rows = []
    for source, values in printed(group.card, method).items():
        cells = [values.get((column.metric, column.stat)) for column in columns]
        if any(value is not None for value in cells):
            rows.append(Row(f"{method} in {cited(group.card, source)}", tuple(map(_printed_cell, cells)), None, 0))
    return rows


def _printed_cell(value: float | None) -> Cell | None:
    nan = math.nan
    return None if value is None else Cell(value, nan, nan, "not printed", 0, 0, "as printed", leads=False)


def is_share(metric: str) -> bool:
    """Whether a metric is a share, which reads best in percent."""
    return bool(registry.get("metric", metric).unit == "share")


def bounds(metric: str) -> tuple[float, float]:
    """The smallest and the largest value that a metric can have."""
    return (0.0, 1.0) if is_share(metric) else (0.0, math.inf)


def shown(value: float | None, share: bool) -> str:
    """A number as tables print it.

    >>> shown(0.8125, share=True), shown(1.5, share=False), shown(float("nan"), share=True)
    ('81.2', '1.50', '–')
    """
    if value is None or not math.isfinite(value):
        return NONE
    return f"{100 * value:.1f}" if share else f"{value:.2f}"


def shown_interval(cell: Cell, share: bool) -> str:
    """`[low, high]` on the scale of the number; nothing for a printed number that came without."""
    if math.isnan(cell.low):
        return ""
    return f"[{shown(cell.low, share)}, {shown(cell.high, share)}]"


def shown_false_alarm(cell: Cell) -> str:
    """The false-alarm rate of a horizon; nothing for any other number.

    >>> shown_false_alarm(Cell(4.5, 3.0, 6.0, "seeds", 3, 10, "times", leads=False, false_alarm=0.021))
    'FA 2%'
    """
    return "" if math.isnan(cell.false_alarm) else f"FA {cell.false_alarm:.0%}"


def shown_seeds(seeds: int) -> str:
    """How many runs of ours are behind a row."""
    return str(seeds) if seeds else NONE


def shown_amount(amount: float | None) -> str:
    """Compute, or any other amount, with three digits that count.

    >>> shown_amount(28.2944), shown_amount(0.01234), shown_amount(123456.7), shown_amount(None)
    ('28.3', '0.0123', '123,457', '–')
    """
    if amount is None or not math.isfinite(amount):
        return NONE
    return f"{amount:,.0f}" if abs(amount) >= 100 else f"{amount:.3g}"


def _column(metric: str, stat: str, card: dict[str, Any]) -> Column:
    registered = registry.get("metric", metric)
    settings = {key: value for key, value in card["metrics"].get(metric, {}).items() if key != "formula"}
    given = {key: value for key, value in settings.items() if value is not None}
    over = getattr(registry.get("benchmark", card["run"]["benchmark"]), "interval_over", Column.interval_over)
    return Column(metric, stat, registered.formula, registered.better, given, over)


def _cell(summary: dict[Any, dict[str, Any]], key: tuple[str, str, str], column: Column, leads: bool) -> Cell | None:
    row = summary.get(key)
    if row is None or not math.isfinite(row["value"]):
        return None
    ends = cut(row["low"], row["high"], top=1.0 if column.share else math.inf)._asdict()
    rate = summary.get((*key[:2], "false-alarm"), {}).get("value", math.nan)
    counts = {"seeds": int(row["seeds"]), "n": int(row["n"])}
    over = "seeds" if row["interval"] == "seeds" else column.interval_over
    return Cell(**{**row, **ends, **counts, "interval": over}, leads=leads, false_alarm=rate)


def _gmac(group: Group, method: str) -> float | None:
    counts = [run.card["compute"] for run in group.runs_of(method)]
    if any(count["forward_macs"] is None for count in counts):
        return None
    return float(np.mean([count["forward_macs"] + (count["backward_macs"] or 0) for count in counts])) / 1e9
