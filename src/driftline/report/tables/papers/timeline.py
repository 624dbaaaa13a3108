"""The tables of Tracking Adaptation Time (Iovine et al.) and of Wild-Time (Yao et al.).

`timeline/table-1`: accuracy on the own and on later periods, TAS, and under them the horizons.
`timeline/table-2`: averages over time and the worst of it. Both are of runs with protocol=stream.

`timeline/wild-time-table-1`: datasets by accuracy up to the split and after it, of one model trained on all that came
before. `timeline/wild-time-table-2`: methods by datasets, the average and the worst period after the split. Both are of
runs with protocol=fix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from driftline.errors import UserError
from driftline.report.analysis.aggregate import leaders
from driftline.report.analysis.estimates import Entry, Measured, measured
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import Mark
from driftline.report.analysis.published import printed
from driftline.report.analysis.result_table import is_share
from driftline.report.tables.paper_grid import Grid, Line
from driftline.report.tables.papers.base import Layout, entry, place, refuse_none

BENCHMARK = "timeline"
METHODS = (
    *("moco-hat", "moco-nb", "moco-arf", "simclr", "swav", "si", "ewc", "a-gem", "ft", "swa"),
    *("erm-all", "erm", "coral-t", "groupdro-t", "irm-t", "mixup", "lisa"),
)
DATASETS = ("yearbook", "fmow", "huffpost", "arxiv")
POOLED = "erm-all"
TRACKING, WILD = "temporal-metrics Table", "Wild-Time Table"
Score = tuple[str, str]  # a metric and a statistic
Columns = Sequence[Mapping[str, Measured]]
TABLE_1: dict[Score, str] = {("id", "mean"): "ID", ("ood", "mean"): "OOD", ("tas", "mean"): "TAS"}
HORIZONS: dict[Score, str] = {("sh-paper", "mean"): "SH", ("dh-paper", "mean"): "DH"}
TABLE_2: dict[Score, str] = {
    **{("id", "mean"): "ID avg", ("ood", "mean"): "OOD avg", ("ood", "minimum"): "OOD min"},
    **{("tas", "mean"): "TAS avg", ("tas", "minimum"): "TAS min"},
}
FIXED: dict[Score, str] = {("fix-id", "mean"): "ID", ("fix-ood", "mean"): "OOD avg", ("fix-worst", "mean"): "OOD worst"}
INTERVALS = (
    "{unit}: means over seeds with 95% t-intervals, or with one seed intervals over test examples. Bold: the "
    "best of a column and all that are not significantly worse (paired t-test on common seeds at 5%, Holm-corrected); "
    "it takes three seeds."
)
PRINTED = "Rows with a source are as printed there. That paper has no code and does not state the epsilon of DH."
PRINTED_FIXED = "Rows with a source are as printed there, with the networks, splits and seeds of that paper."


def _table_1(found: list[Group]) -> list[Grid]:
    grids = []
    for group in _with_protocol(found, "stream"):
        for name, columns in (("Table 1", TABLE_1), ("Table 1: horizons", HORIZONS)):
            grids.append(_by_method(f"{name}, {group.title}", group, columns, f"{TRACKING} 1"))
    return grids


def _table_2(found: list[Group]) -> list[Grid]:
    groups = _with_protocol(found, "stream")
    return [_by_method(f"Table 2, {group.title}", group, TABLE_2, f"{TRACKING} 2") for group in groups]


def _by_method(title: str, group: Group, columns: dict[Score, str], table: str) -> Grid:
    """A line for each method with its printed line beneath, a column for each score, all of one unit."""
    cells = [measured(group, *score) for score in columns]
    lines = []
    for label in _ordered(group.methods):
        theirs = printed(group.card, label).get(table, {})
        lines += _lines(label, cells, [theirs.get(score) for score in columns], table)
    share = all(is_share(metric) for metric, _ in columns)
    said = [PRINTED] if any(line.source for line in lines) else []
    said += [] if share else _false_alarms(group, columns)
    notes = (INTERVALS.format(unit="In percent" if share else "In periods"), *said)
    return Grid(title, "method", tuple(columns.values()), tuple(lines), notes, share)


def _false_alarms(group: Group, columns: dict[Score, str]) -> list[str]:
    """How often our horizons would end if nothing changed."""
    rates = {head: measured(group, metric, "false-alarm") for (metric, _), head in columns.items()}
    known = [label for label in _ordered(group.methods) if all(label in found for found in rates.values())]
    each = [f"{label} {' '.join(f'{h} {rate[label].value:.0%}' for h, rate in rates.items())}" for label in known]
    text = "Horizons by the paper's definition. Share of models whose horizon would end if nothing changed: "
    return [f"{text}{', '.join(each)}."] if each else []


def _wild_time_1(found: list[Group]) -> list[Grid]:
    """Datasets by accuracy up to the split and after it; the OOD of this table is that of erm-all in the next."""
    lines = []
    for name, group in _datasets(found).items():
        for label in (label for label in group.methods if label.partition("(")[0] == POOLED):
            cells = [measured(group, *score).get(label) for score in FIXED]
            lines.append(Line(f"{name}: {label}", tuple(entry(cell, None) for cell in cells)))
            theirs = {score: v for numbers in printed(group.card, label).values() for score, v in numbers.items()}
            beside = tuple(_printed(theirs.get(score)) for score in FIXED)
            lines += [Line(f"{name}: {label}", beside, f"{WILD} 1")] if any(beside) else []
    if not lines:
        raise UserError(f"no run of {BENCHMARK} with protocol=fix and the method {POOLED}")
    notes = (INTERVALS.partition(" Bold")[0].format(unit="In percent"), *_said(lines))
    return [Grid("Wild-Time Table 1: before and after the split", "data", tuple(FIXED.values()), tuple(lines), notes)]


def _wild_time_2(found: list[Group]) -> list[Grid]:
    """Methods by datasets."""
    datasets = _datasets(found)
    scores = [(group, score) for group in datasets.values() for score in list(FIXED)[1:]]
    cells = [measured(group, *score) for group, score in scores]
    lines = []
    for label in _ordered(dict.fromkeys(label for column in cells for label in column)):
        theirs = [printed(group.card, label).get(f"{WILD} 2", {}).get(score) for group, score in scores]
        lines += _lines(label, cells, theirs, f"{WILD} 2")
    heads = tuple(f"{name}: {head}" for name in datasets for head in list(FIXED.values())[1:])
    notes = (INTERVALS.format(unit="In percent"), *_said(lines))
    return [Grid("Wild-Time Table 2: after the split", "method", heads, tuple(lines), notes)]


def _lines(label: str, cells: Columns, theirs: Sequence[float | None], source: str) -> list[Line]:
    """Ours, and what is printed."""
    best = [leaders({name: cell.by_seed for name, cell in column.items()}, "higher") for column in cells]
    marked = zip(cells, best, strict=True)
    ours = Line(label, tuple(entry(column.get(label), Mark(bold=label in top)) for column, top in marked))
    beside = tuple(map(_printed, theirs))
    return [ours, Line(label, beside, source)] if any(beside) else [ours]


def _with_protocol(found: list[Group], protocol: str) -> list[Group]:
    ours = [group for group in found if group.card["run"]["options"].get("protocol") == protocol]
    refuse_none(ours, BENCHMARK, f"with protocol={protocol}")
    return ours


def _datasets(found: list[Group]) -> dict[str, Group]:
    """The groups of Eval-Fix by the name of their data, or by their title where a dataset has several groups."""
    groups = _with_protocol(found, "fix")
    names = [str(group.card["data"]["name"]) for group in groups]
    named = {name if names.count(name) == 1 else group.title: group for name, group in zip(names, groups, strict=True)}
    return {name: named[name] for name in sorted(named, key=place(DATASETS))}


def _printed(value: float | None) -> Entry | None:
    return None if value is None else Entry(value)


def _said(lines: Iterable[Line]) -> list[str]:
    return [PRINTED_FIXED] if any(line.source for line in lines) else []


def _ordered(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (place(METHODS)(label.partition("(")[0]), label))


LAYOUTS: dict[str, Layout] = {
    f"{BENCHMARK}/table-1": _table_1,
    f"{BENCHMARK}/table-2": _table_2,
    f"{BENCHMARK}/wild-time-table-1": _wild_time_1,
    f"{BENCHMARK}/wild-time-table-2": _wild_time_2,
}
