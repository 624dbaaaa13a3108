"""Average ranks of methods over many settings: datasets, models, sequences.

A setting is a group of comparable runs. In each, methods are ranked by their means over the seeds that all of them
have. A method that was not run in every setting has no place in such a table, and neither has the oracle, which is
shown more than the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftline.errors import UserError
from driftline.metrics.comparisons import Ranks, average_ranks, friedman
from driftline.record import Record
from driftline.report.groups import Group, newest
from driftline.report.results import Column, by_seed, headline
from driftline.report.sheets import Sheet, shown_p
from driftline.report.tables import span

HEAD = ("method", "mean rank", "best in", "n")
NOTE = (
    "n: settings. Rank 1 is the best of a setting; methods that tie share the mean of their ranks. A setting's ranks "
    "are of means over the seeds that all methods have there ({seeds})."
)
TEST = (
    "Friedman's test that all are alike: chi-squared = {statistic:.2f} with {freedom} degree(s) of freedom, p = {p}; "
    "rough for few settings, and it takes them for independent ({datasets} dataset(s))."
)

Scores = Mapping[str, Mapping[int, float]]
"""Of one setting: by method, by seed."""


@dataclass(frozen=True)
class Ranking:
    """Methods over settings: a table of means with a row per setting, and what was left out of it."""

    methods: list[str]
    seeds: dict[str, list[int]]
    """Of each setting that counts, those that all methods have."""
    means: np.ndarray
    missing: list[str]
    """Methods that are not in every setting."""
    idle: list[str]
    """Settings without a common seed."""


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
        if (ranking := rank({title: _known(group, columns[key]) for title, group in members.items()}))
    ]
    if not sheets:
        raise UserError(
            "average ranks take two methods that were run in two settings or more, on common seeds: run the same "
            "methods on other data, models or sequences, or name the runs to rank"
        )
    return sheets


def rank(scores: Mapping[str, Scores]) -> Ranking | None:
    """The methods that all settings have, in those where they share a seed; None if there are not two of each."""
    several = {title: one for title, one in scores.items() if len(one) > 1}  # one method alone has no rank
    every = sorted({method for one in several.values() for method in one})
    methods = [method for method in every if all(method in one for one in several.values())]
    common = {title: _common(one, methods) for title, one in several.items()} if len(methods) > 1 else {}
    seeds = {title: found for title, found in common.items() if found}
    if len(seeds) < 2:
        return None
    means = [[np.mean([several[title][m][seed] for seed in found]) for m in methods] for title, found in seeds.items()]
    missing = [method for method in every if method not in methods]
    return Ranking(methods, seeds, np.array(means), missing, [title for title in common if title not in seeds])


def _known(group: Group, column: Column) -> Scores:
    found = by_seed(group.scores, column)
    fair = {method: values for method, values in found.items() if method in group.competing}
    kept = {method: {s: v for s, v in values.items() if math.isfinite(v)} for method, values in fair.items()}
    return {method: values for method, values in kept.items() if values}


def _common(scores: Scores, methods: Sequence[str]) -> list[int]:
    return sorted(set.intersection(*(set(scores[method]) for method in methods)))


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
    seeds = span([len(one) for one in found.seeds.values()])
    freedom, p = len(found.methods) - 1, shown_p(result.p)
    return [
        NOTE.format(seeds=seeds),
        TEST.format(statistic=result.statistic, freedom=freedom, p=p, datasets=len(names)),
        f"Settings: {'; '.join(found.seeds)}.",
        *([f"Left out, not run in every setting: {', '.join(found.missing)}."] if found.missing else []),
        *([f"Left out, no seed in common: {'; '.join(found.idle)}."] if found.idle else []),
    ]
