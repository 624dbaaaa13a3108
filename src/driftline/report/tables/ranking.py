"""Average ranks of methods over many settings: datasets, models, sequences.

A setting is a group of comparable runs. In each, methods are ranked by their means over the seeds that all of them
have. A method that was not run in every setting has no place in such a table, and neither has the oracle, which is
shown more than the others.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from driftline.errors import UserError
from driftline.metrics.comparisons import Ranks, average_ranks, friedman
from driftline.record import Record
from driftline.report.analysis.groups import Group, newest
from driftline.report.analysis.ranking import Ranking, known_scores, rank
from driftline.report.analysis.result_table import Column, headline
from driftline.report.format import count_range, format_p
from driftline.report.tables.sheet import Sheet

HEAD = ("method", "mean rank", "best in", "n")
NOTE = (
    "n: settings. Rank 1 is the best of a setting; methods that tie share the mean of their ranks. A setting's ranks "
    "are of means over the seeds that all methods have there ({seeds})."
)
TEST = (
    "Friedman's test that all are alike: chi-squared = {statistic:.2f} with {freedom} degree(s) of freedom, p = {p}; "
    "rough for few settings, and it takes them for independent ({datasets} dataset(s))."
)


def ranks(record: Record) -> list[Sheet]:
    """A sheet for each headline metric of each benchmark in which two methods met in two settings or more."""
    found: dict[tuple[str, str, str], dict[str, Group]] = {}
    columns: dict[tuple[str, str, str], Column] = {}
    for group in newest(record):
        for column in headline(group):
            key = (group.card["run"]["benchmark"], column.metric, column.stat)
            columns.setdefault(key, column)
            found.setdefault(key, {})[group.title] = group
    sheets = [
        _sheet(key[0], columns[key], members, ranking)
        for key, members in found.items()
        if (ranking := rank({title: known_scores(group, columns[key]) for title, group in members.items()}))
    ]
    if not sheets:
        raise UserError(
            "average ranks take two methods that were run in two settings or more, on common seeds: run the same "
            "methods on other data, models or sequences, or name the runs to rank"
        )
    return sheets


def _sheet(benchmark: str, column: Column, members: Mapping[str, Group], found: Ranking) -> Sheet:
    result = friedman(found.means, column.better)
    each = np.stack([average_ranks(row, column.better) for row in found.means])
    best = (each == each.min(axis=1, keepdims=True)).sum(axis=0)
    order = sorted(range(len(found.methods)), key=lambda k: (result.mean[k], found.methods[k]))
    lines = tuple((found.methods[k], f"{result.mean[k]:.2f}", str(best[k]), str(result.n)) for k in order)
    counts = [len(seeds) for seeds in found.seeds.values()]
    rows = tuple(
        {
            **{"benchmark": benchmark, "metric": column.metric, "stat": column.stat, "method": found.methods[k]},
            **{"rank": float(result.mean[k]), "best_in": int(best[k]), "n": result.n, "seeds": min(counts)},
            **{"friedman": result.statistic, "p": result.p},
        }
        for k in order
    )
    title = f"{benchmark}: mean ranks by {column.name} over {result.n} settings"
    return Sheet(title, HEAD, lines, rows, tuple(_notes(found, result, members)))


def _notes(found: Ranking, result: Ranks, members: Mapping[str, Group]) -> list[str]:
    names = {members[title].card["data"]["name"] for title in found.seeds}
    seeds = count_range([len(one) for one in found.seeds.values()])
    freedom, p = len(found.methods) - 1, format_p(result.p)
    return [
        NOTE.format(seeds=seeds),
        TEST.format(statistic=result.statistic, freedom=freedom, p=p, datasets=len(names)),
        f"Settings: {'; '.join(found.seeds)}.",
        *([f"Left out, not run in every setting: {', '.join(found.missing)}."] if found.missing else []),
        *([f"Left out, no seed in common: {'; '.join(found.idle)}."] if found.idle else []),
    ]
