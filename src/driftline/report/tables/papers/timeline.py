"""The tables of Tracking Adaptation Time (Iovine et al.) and of Wild-Time (Yao et al.)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from driftline.errors import UserError
from driftline.registry import register
from driftline.report.analysis.aggregate import best_or_tied
from driftline.report.analysis.estimates import Estimate, estimates, is_share
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.published import published_values
from driftline.report.format import format_amount, format_percent
from driftline.report.tables.model import Table, TableRow, bold_note
from driftline.report.tables.papers.base import cell, columns, has_source, order, published, published_row, require_runs

BENCHMARK = "timeline"
METHODS = (
    *("moco-hat", "moco-nb", "moco-arf", "simclr", "swav", "si", "ewc", "a-gem", "ft", "swa"),
    *("erm-all", "erm", "coral-t", "groupdro-t", "irm-t", "mixup", "lisa"),
)
DATASETS = ("yearbook", "fmow", "huffpost", "arxiv")
POOLED = "erm-all"
TRACKING, WILD = "temporal-metrics Table", "Wild-Time Table"
ScoreName = tuple[str, str]  # a metric and a statistic
TABLE_1: dict[ScoreName, str] = {("id", "mean"): "ID", ("ood", "mean"): "OOD", ("tas", "mean"): "TAS"}
HORIZONS: dict[ScoreName, str] = {("sh-paper", "mean"): "SH", ("dh-paper", "mean"): "DH"}
TABLE_2: dict[ScoreName, str] = {
    **{("id", "mean"): "ID avg", ("ood", "mean"): "OOD avg", ("ood", "minimum"): "OOD min"},
    **{("tas", "mean"): "TAS avg", ("tas", "minimum"): "TAS min"},
}
FIXED: dict[ScoreName, str] = {
    ("fix-id", "mean"): "ID",
    ("fix-ood", "mean"): "OOD avg",
    ("fix-worst", "mean"): "OOD worst",
}
INTERVALS = "{unit}: means over seeds with 95% t-intervals, or with one seed intervals over test examples."
PUBLISHED = "Rows with a source are as published there. That paper has no code and does not state the epsilon of DH."
PUBLISHED_FIXED = "Rows with a source are as published there, with the networks, splits and seeds of that paper."


@register("paper-table", "timeline/table-1")
def table_1(groups: list[Group]) -> list[Table]:
    """Accuracy in the own and in later periods, TAS, and below them the horizons; runs with protocol=stream."""
    tables = []
    for group in _with_protocol(groups, "stream"):
        for name, scores in (("Table 1", TABLE_1), ("Table 1: horizons", HORIZONS)):
            tables.append(_by_method(f"{name}, {group.title}", group, scores, f"{TRACKING} 1"))
    return tables


@register("paper-table", "timeline/table-2")
def table_2(groups: list[Group]) -> list[Table]:
    """Averages over time and the worst time; runs with protocol=stream."""
    ours = _with_protocol(groups, "stream")
    return [_by_method(f"Table 2, {group.title}", group, TABLE_2, f"{TRACKING} 2") for group in ours]


def _by_method(title: str, group: Group, scores: dict[ScoreName, str], source: str) -> Table:
    """Return a row for each method with its published row below, a column for each score, all of one unit."""
    found = [estimates(group, *score) for score in scores]
    rows = []
    for label in _ordered(group.methods):
        values = published_values(group.card, label).get(source, {})
        rows += _rows(label, found, [values.get(score) for score in scores], source)
    share = all(is_share(metric) for metric, _ in scores)
    more = [PUBLISHED] if has_source(rows) else []
    more += [] if share else _false_alarms(group, scores)
    notes = (INTERVALS.format(unit="In percent" if share else "In periods"), bold_note(), *more)
    numbers = columns(*scores.values(), format=format_percent if share else format_amount)
    return Table(title, "method", numbers, tuple(rows), notes)


def _false_alarms(group: Group, scores: dict[ScoreName, str]) -> list[str]:
    """Return the share of horizons that would end if nothing changed."""
    rates = {head: estimates(group, metric, "false-alarm") for (metric, _), head in scores.items()}
    known = [label for label in _ordered(group.methods) if all(label in found for found in rates.values())]
    each = [f"{label} {' '.join(f'{h} {rate[label].value:.0%}' for h, rate in rates.items())}" for label in known]
    text = "Horizons by the paper's definition. Share of models whose horizon would end if nothing changed: "
    return [f"{text}{', '.join(each)}."] if each else []


@register("paper-table", "timeline/wild-time-table-1")
def wild_time_table_1(groups: list[Group]) -> list[Table]:
    """Datasets by accuracy up to the split and after it, of one model trained on all data before it; protocol=fix."""
    rows: list[TableRow] = []
    for name, group in _datasets(groups).items():
        for label in (label for label in group.methods if label.partition("(")[0] == POOLED):
            ours = (estimates(group, *score).get(label) for score in FIXED)
            rows.append(TableRow(f"{name}: {label}", tuple(map(cell, ours))))
            sources = published_values(group.card, label).values()
            values = {score: value for numbers in sources for score, value in numbers.items()}
            cells = tuple(published(values.get(score)) for score in FIXED)
            rows += published_row(f"{name}: {label}", cells, f"{WILD} 1")
    if not rows:
        raise UserError(f"no run of {BENCHMARK} with protocol=fix and the method {POOLED}")
    notes = (INTERVALS.format(unit="In percent"), *_published_notes(rows))
    title = "Wild-Time Table 1: before and after the split"
    return [Table(title, "data", columns(*FIXED.values()), tuple(rows), notes)]


@register("paper-table", "timeline/wild-time-table-2")
def wild_time_table_2(groups: list[Group]) -> list[Table]:
    """Methods by datasets, the average and the worst period after the split; protocol=fix."""
    datasets = _datasets(groups)
    scores = [(group, score) for group in datasets.values() for score in list(FIXED)[1:]]
    found = [estimates(group, *score) for group, score in scores]
    rows = []
    for label in _ordered(dict.fromkeys(label for column in found for label in column)):
        values = [published_values(group.card, label).get(f"{WILD} 2", {}).get(score) for group, score in scores]
        rows += _rows(label, found, values, f"{WILD} 2")
    heads = (f"{name}: {head}" for name in datasets for head in list(FIXED.values())[1:])
    notes = (INTERVALS.format(unit="In percent"), bold_note(), *_published_notes(rows))
    return [Table("Wild-Time Table 2: after the split", "method", columns(*heads), tuple(rows), notes)]


def _rows(
    label: str, found: Sequence[Mapping[str, Estimate]], values: Sequence[float | None], source: str
) -> list[TableRow]:
    """Return our row of a method, and the published one."""
    best = [best_or_tied({name: one.by_seed for name, one in column.items()}, "higher") for column in found]
    both = zip(found, best, strict=True)
    ours = TableRow(label, tuple(cell(column.get(label), Highlight(bold=label in top)) for column, top in both))
    return [ours, *published_row(label, tuple(map(published, values)), source)]


def _with_protocol(groups: list[Group], protocol: str) -> list[Group]:
    ours = [group for group in groups if group.options.get("protocol") == protocol]
    require_runs(ours, BENCHMARK, f"with protocol={protocol}")
    return ours


def _datasets(groups: list[Group]) -> dict[str, Group]:
    """Return the groups of Eval-Fix by the name of their data, or by title where a dataset has several groups."""
    groups = _with_protocol(groups, "fix")
    names = [str(group.card.data.name) for group in groups]
    named = {name if names.count(name) == 1 else group.title: group for name, group in zip(names, groups, strict=True)}
    return {name: named[name] for name in sorted(named, key=order(DATASETS))}


def _published_notes(rows: list[TableRow]) -> list[str]:
    return [PUBLISHED_FIXED] if has_source(rows) else []


def _ordered(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (order(METHODS)(label.partition("(")[0]), label))
