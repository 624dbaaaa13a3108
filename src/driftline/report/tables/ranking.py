"""Tables of mean ranks of methods over groups of runs: datasets, models, sequences."""

from __future__ import annotations

from collections.abc import Mapping

from driftline.errors import UserError
from driftline.metrics.significance import Ranks, friedman
from driftline.record.run import Record
from driftline.report.analysis.groups import Group, newest
from driftline.report.analysis.ranking import Ranking, rank, ranked_scores
from driftline.report.analysis.result_table import Column, headline_columns
from driftline.report.format import count_range, format_p
from driftline.report.tables.captions import budget_notes
from driftline.report.tables.model import Table, text_columns, text_row

NOTE = (
    "n: number of settings. Rank 1 is the best of a setting; tied methods share the mean of their ranks. Ranks are of "
    "means over the seeds that all methods of a setting have ({seeds})."
)
TEST = (
    "Friedman test that all methods are equal: chi-squared = {statistic:.2f} with {freedom} degree(s) of freedom, p = "
    "{p}; approximate for few settings, which are assumed to be independent ({datasets} dataset(s))."
)


def ranking_tables(record: Record) -> list[Table]:
    """Return a table for each headline metric of each benchmark with two methods in two groups or more."""
    found: dict[tuple[str, str, str], dict[str, Group]] = {}
    columns: dict[tuple[str, str, str], Column] = {}
    for group in newest(record):
        for column in headline_columns(group):
            key = (group.benchmark, column.metric, column.stat)
            columns.setdefault(key, column)
            found.setdefault(key, {})[group.title] = group
    tables = [
        _table(key[0], columns[key], members, ranking)
        for key, members in found.items()
        if (ranking := rank({title: ranked_scores(group, columns[key]) for title, group in members.items()}))
    ]
    if not tables:
        raise UserError(
            "mean ranks need two methods that were run in two settings or more, on common seeds: run the same "
            "methods on other data, models or sequences, or name the runs to rank"
        )
    return tables


def _table(benchmark: str, column: Column, members: Mapping[str, Group], ranking: Ranking) -> Table:
    result = friedman(ranking.means, column.better)
    ranks = ranking.ranks([column.better] * len(ranking.means))
    best = (ranks == ranks.min(axis=1, keepdims=True)).sum(axis=0)
    order = sorted(range(len(ranking.methods)), key=lambda k: (result.mean[k], ranking.methods[k]))
    seeds = min(len(seeds) for seeds in ranking.seeds.values())
    records = (
        {
            **{"benchmark": benchmark, "metric": column.metric, "stat": column.stat, "method": ranking.methods[k]},
            **{"rank": float(result.mean[k]), "best_in": int(best[k]), "n": result.n, "seeds": seeds},
            **{"friedman": result.statistic, "p": result.p},
        }
        for k in order
    )
    return Table(
        title=f"{benchmark}: mean ranks by {column.name} over {result.n} settings",
        row_header="method",
        columns=text_columns("mean rank", "best in", "n"),
        rows=tuple(text_row(ranking.methods[k], f"{result.mean[k]:.2f}", str(best[k]), str(result.n)) for k in order),
        notes=tuple(_notes(ranking, result, members)),
        records=tuple(records),
    )


def _notes(ranking: Ranking, result: Ranks, members: Mapping[str, Group]) -> list[str]:
    datasets = {members[title].card.data.name for title in ranking.seeds}
    seeds = count_range([len(seeds) for seeds in ranking.seeds.values()])
    freedom, p = len(ranking.methods) - 1, format_p(result.p)
    return [
        NOTE.format(seeds=seeds),
        TEST.format(statistic=result.statistic, freedom=freedom, p=p, datasets=len(datasets)),
        f"Settings: {'; '.join(ranking.seeds)}.",
        *budget_notes(members[title] for title in ranking.seeds),
        *([f"Left out because not run in every setting: {', '.join(ranking.missing)}."] if ranking.missing else []),
        *(
            [f"Left out because without a common seed: {'; '.join(ranking.without_seed)}."]
            if ranking.without_seed
            else []
        ),
    ]
