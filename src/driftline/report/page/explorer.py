"""The explorer of the page: all results to filter, and the settings and scores of two runs side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable

from driftline.record.card import flatten
from driftline.report.analysis.cards import beyond, shared
from driftline.report.analysis.curves import json_value
from driftline.report.analysis.groups import Group
from driftline.report.analysis.result_table import Column, ResultTable
from driftline.report.format import format_interval, format_value
from driftline.report.page.section import Section
from driftline.types import JsonObject

NO_SETTINGS = ("files", "key", "question", "paper", "departures")


def explorer(sections: Iterable[Section]) -> JsonObject:
    """Return the results and the runs of sections."""
    found = [(section.benchmark, section.data, section.table) for section in sections]
    results = [row for benchmark, data, table in found for row in _results(benchmark, data, table)]
    return {"results": results, "groups": [_group(f"{b} · {data}", table) for b, data, table in found]}


def _results(benchmark: str, data: str, table: ResultTable) -> list[list[object]]:
    return [
        [
            *(benchmark, data, row.method, column.name),
            *(_number(cell.value, column), format_interval(cell, column.share)),
            *(cell.n, cell.seeds),
        ]
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell
    ]


def _group(title: str, table: ResultTable) -> JsonObject:
    """Return what all runs of a group share, and the settings and scores of each run beyond that."""
    group = table.group
    cards = {
        run.key: {key: value for key, value in run.card.to_dict().items() if key not in NO_SETTINGS}
        for run in group.runs
    }
    common, scores = shared(list(cards.values())), _scores(group, table.columns)
    runs = [
        {
            **{"key": run.key, "method": group.labels[run.key], "seed": run.seed},
            **{
                "own": _texts(beyond(cards[run.key], common)),
                "scores": scores.get((group.labels[run.key], run.seed), {}),
            },
        }
        for run in group.runs
    ]
    return {"title": title, "shared": _texts(common), "runs": runs}


def _scores(group: Group, columns: Iterable[Column]) -> dict[tuple[str, int], dict[str, object]]:
    known = {(column.metric, column.stat): column for column in columns}
    rows = group.summary
    found: dict[tuple[str, int], dict[str, object]] = {}
    for method, seed, metric, stat, value in rows[["method", "seed", "metric", "stat", "value"]].itertuples(
        index=False
    ):
        column = known.get((metric, stat))
        number = json_value(value)
        if column and number is not None:
            found.setdefault((method, int(seed)), {})[column.name] = round(100 * number, 2) if column.share else number
    return found


def _number(value: float, column: Column) -> str:
    return f"{format_value(value, column.share)}{' %' if column.share else ''}"


def _texts(content: JsonObject) -> dict[str, str]:
    """Return nested settings by their path, as texts."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
        for name, value in flatten(content).items()
    }
