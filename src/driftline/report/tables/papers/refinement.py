"""The tables of Continual Model Refinement (Lin et al.)."""

from __future__ import annotations

from collections.abc import Iterable

from driftline.benchmarks.refinement.scores import variant_names
from driftline.errors import UserError
from driftline.published.numbers import published_name
from driftline.registry import register
from driftline.report.analysis.aggregate import best_or_tied
from driftline.report.analysis.estimates import Estimate, estimates
from driftline.report.analysis.gains import gains
from driftline.report.analysis.groups import Group, group_ignoring
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.published import published_values, source_note
from driftline.report.tables.model import Table, TableCell, TableRow, bold_note
from driftline.report.tables.papers.base import (
    cell,
    columns,
    has_source,
    order,
    published,
    published_row,
    require_runs,
    titled,
)

BENCHMARK, FROZEN = "refinement", "frozen"
FIRST, SECOND = "CMR Table 1", "CMR Table 2"
GAIN = ("oec-gain", "final")
METHODS = (
    *("frozen", "cft", "online-l2", "online-ewc", "er(replay_every=3)", "er"),
    *("maxloss(replay_every=3)", "maxloss", "maxloss(n_candidates=512)", "maxloss(n_candidates=1024)"),
    *("mir(replay_every=3)", "mir", "mir(n_candidates=512)", "mir(n_candidates=1024)", "mir+l2", "offline"),
)
METRICS = ("ukr", "okr", "csr", "kg", "oec")
SCORES = (("efr", "mean"), *((name, "mean") for name in METRICS), *((name, "final") for name in METRICS))
DYNAMICS = tuple(
    f"alpha=0.9, beta={beta}, gamma={gamma}"
    for beta, gamma in (("0.5", "0.8"), ("0.1", "0.8"), ("0.9", "0.8"), ("0.5", "0.5"), ("0.5", "0.2"))
)
INTERVALS = (
    "In percent: means over seeds with 95% t-intervals, or with one seed bootstrap intervals over examples, clipped to "
    "0 and 100. Columns with (T) are values at the last step, the others means over steps."
)
GAINS = (
    "In percentage points: means over seeds of OEC(T) minus that of frozen on the same seed, with 95% t-intervals, "
    "which need two seeds."
)
PUBLISHED = (
    "Rows with a source are as published there: one run on one stream of its own data, scored with the model before "
    "each step"
)
OFFLINE = "Its offline CSR is that of the final model, which was selected by KG."


@register("paper-table", "refinement/table-1")
def table_1(groups: list[Group]) -> list[Table]:
    """Methods by metrics: means over steps and final values."""
    require_runs(groups, BENCHMARK)
    return [_by_metric(group) for group in groups]


def _by_metric(group: Group) -> Table:
    metrics = variant_names(group.options["indexing"], group.options["csr"])
    found = [estimates(group, metrics[metric], stat) for metric, stat in SCORES]
    best = [best_or_tied({label: one.by_seed for label, one in column.items()}, "higher") for column in found]
    rows: list[TableRow] = []
    for label in _ordered(group.methods):
        both = zip(found, best, strict=True)
        cells = (cell(column.get(label), Highlight(bold=label in top)) for column, top in both)
        rows.append(TableRow(label, tuple(cells)))
        values = published_values(group.card, label).get(FIRST, {})
        cells = (published(values.get(score)) for score in SCORES)
        rows += published_row(label, tuple(cells), source_note(group.card, FIRST))
    heads = (metric.upper() + ("(T)" if stat == "final" else "") for metric, stat in SCORES)
    notes = [INTERVALS, bold_note(), *([f"{PUBLISHED}."] if has_source(rows) else [])]
    notes += [OFFLINE] if any(row.source and row.name.startswith("offline") for row in rows) else []
    return Table(f"Table 1: {group.title}", "method", columns(*heads), tuple(rows), tuple(notes))


@register("paper-table", "refinement/table-2")
def table_2(groups: list[Group]) -> list[Table]:
    """Gains in OEC(T) over the frozen model, by the dynamics of the stream: alpha, beta and gamma."""
    require_runs(groups, BENCHMARK)
    usable = [group for group in groups if gains(group)]
    if not usable:
        raise UserError(
            f"no run of {BENCHMARK} has {FROZEN} and another method, on the same seed, data and stream: gains are "
            f"over it, so run it too with --methods {FROZEN},..."
        )
    ignored = [f"{BENCHMARK}.{name}" for name in ("alpha", "beta", "gamma")]
    sets = group_ignoring(usable, ignored)
    return [_by_dynamics(titled("Table 2: gain in OEC(T)", settings), members) for settings, members in sets]


def _by_dynamics(title: str, members: list[Group]) -> Table:
    groups = {_dynamics(group): group for group in sorted(members, key=lambda group: order(DYNAMICS)(_dynamics(group)))}
    ours = {name: gains(group) for name, group in groups.items()}
    labels = _ordered(dict.fromkeys(label for found in ours.values() for label in found))
    rows: list[TableRow] = []
    for name, group in groups.items():
        rows.append(TableRow(name, _highlighted(ours[name], labels)))
        cells = (published(published_values(group.card, label).get(SECOND, {}).get(GAIN)) for label in labels)
        rows += published_row(name, tuple(cells), source_note(group.card, SECOND))
    sourced = [f"{PUBLISHED}; its replay methods have k = 3."] if has_source(rows) else []
    return Table(title, "stream", columns(*labels), tuple(rows), (GAINS, bold_note("row"), *sourced))


def _highlighted(found: dict[str, Estimate], labels: Iterable[str]) -> tuple[TableCell | None, ...]:
    best = best_or_tied({label: one.by_seed for label, one in found.items()}, "higher")
    return tuple(cell(found.get(label), Highlight(bold=label in best)) for label in labels)


def _dynamics(group: Group) -> str:
    return str(group.card.protocol["protocol"])


def _ordered(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (order(METHODS)(published_name(BENCHMARK, label)), label))
