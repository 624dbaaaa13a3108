"""The tables of RDumb (Press, Schneider, Kuemmerer, Bethge).

A number is a mean over seeds; the number of a seed is a mean over the speeds that were run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from driftline.errors import UserError
from driftline.published.numbers import published_name
from driftline.registry import register
from driftline.report.analysis.aggregate import best_or_tied
from driftline.report.analysis.estimates import Estimate, estimates, mean_of
from driftline.report.analysis.frozen_baseline import STREAM
from driftline.report.analysis.groups import Group, group_ignoring
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.published import numbers, source_note
from driftline.report.analysis.repeats import average_repeats
from driftline.report.analysis.setting_sweep import SweepPoint, sweep_points
from driftline.report.format import format_amount
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
from driftline.types import JsonObject

BENCHMARK, FROZEN = "test-time", "frozen"
DATA, MODEL = "imagenet-val", "resnet50"  # of the published numbers
METHODS = ("frozen", "bn", "tent", "rpl", "slr", "cpl", "cotta", "eata", "eta", "rdumb")
STREAMS = ("cin-c", "cin-3dcc", "ccc easy", "ccc medium", "ccc hard")
ARRANGEMENT = (
    *("label_order", "class_correlation", "class_imbalance", "label_concentration"),
    *("domain_correlation", "domain_imbalance", "chain", "reset"),
)
"""Options that a run has only where they are not the default."""
STREAM_OPTIONS = (
    *("order", "calibration", "difficulty", "target", "corruptions", "severity", "images", "images_per_point"),
    *("files", "crop", "jpeg", "frost", *ARRANGEMENT),
)
IGNORED = tuple(f"{BENCHMARK}.{name}" for name in STREAM_OPTIONS)
INTERVALS = (
    "Accuracy in percent: means over seeds, each a mean over speeds where there are several, with 95% t-intervals, "
    "or with one seed and speed block bootstrap intervals over time."
)
ITALIC = "Italic: collapsed, that is, below frozen."
PUBLISHED = (
    "Rows with a source are as published there, for ResNet-50 on ImageNet and streams of 7.5 million images (cin-c and "
    "holdout: 750,000, cin-3dcc: 600,000) with targets of 40, 20 and 0% in ccc: other data, networks, targets and "
    "shorter streams are not comparable."
)
LENGTHS = (
    "Number of points on a path from one corruption to the next, both ends included; at most 41. Each seed counts with "
    "its longest stream; incomplete paths at the end of a stream are left out."
)
STATS = ("min", "max", "mean", "median")
DEFAULTS = {"reset_every": 1000, "entropy_fraction": 0.4, "penalty_weight": 2000}
Estimates = Mapping[str, Estimate]


@register("paper-table", "test-time/table-1")
def table_1(groups: list[Group]) -> list[Table]:
    """Methods by streams."""
    require_runs(groups, BENCHMARK)
    sets = group_ignoring(groups, IGNORED)
    return [_by_stream(titled("Table 1: accuracy", settings), members) for settings, members in sets]


def _by_stream(title: str, members: list[Group]) -> Table:
    streams = _streams(members)
    found = {name: estimates(group, STREAM) for name, group in streams.items()}
    theirs = {name: _published(group, _paper_name(name), "RDumb Table 1") for name, group in streams.items()}
    marked = {name: _highlights(column) for name, column in found.items()}
    rows: list[TableRow] = []
    for label in _ordered(label for column in found.values() for label in column):
        row = {name: column[label] for name, column in found.items() if label in column}
        cells = [cell(row.get(name), marked[name].get(label)) for name in streams]
        rows.append(TableRow(label, tuple(_with_mean(cells, row.values()))))
        rows += _published_row(label, theirs, members[0], "RDumb Table 1")
    heads = (*streams, *(["mean"] if len(streams) > 1 else []))
    notes = (INTERVALS, bold_note(), ITALIC, *_published_notes(rows))
    return Table(title, "method", columns(*heads), tuple(rows), notes)


def _streams(members: Iterable[Group]) -> dict[str, Group]:
    """Return the groups by the name of their stream, in the order of the paper."""
    streams: dict[str, Group] = {}
    for group in average_repeats(members):
        if (name := stream_name(group)) in streams:
            raise UserError(f"there are two kinds of runs for {name}: name the runs that the table is of")
        streams[name] = group
    return {name: streams[name] for name in sorted(streams, key=lambda name: order(STREAMS)(_paper_name(name)))}


def stream_name(group: Group) -> str:
    """Return the name of a stream: its order, and the options that differ from the default."""
    options = group.options
    kind, target = options["order"], options["target"]
    own = target is not None and options["corruptions"]  # the difficulty has no effect
    name = f"ccc {options['difficulty']}" if kind == "ccc" and not own else kind
    more = [f"{target:g}%"] if kind == "ccc" and target is not None else []
    more += [f"severity {options['severity']:g}"] if kind not in ("ccc", "gradual") and options["severity"] < 5 else []
    more += [str(options["corruptions"])] if options["corruptions"] else []
    more += [f"{name.replace('_', ' ')} {options[name]}" for name in ARRANGEMENT if name in options]
    return ", ".join([name, *more])


def _paper_name(name: str) -> str:
    """Return the paper's name of a stream, which does not include the target."""
    return re.sub(r", [\d.]+%$", "", name)


def _highlights(found: Estimates) -> dict[str, Highlight]:
    best = best_or_tied({label: one.by_seed for label, one in found.items()}, "higher")
    return {label: Highlight(label in best, _is_below(one.value, found.get(FROZEN))) for label, one in found.items()}


def _is_below(value: float, frozen: Estimate | None) -> bool:
    return frozen is not None and value < frozen.value


def _with_mean(cells: list[TableCell | None], row: Iterable[Estimate]) -> list[TableCell | None]:
    """Return a row with its mean at the end, if there are several streams and all have a number."""
    if len(cells) < 2:
        return cells
    return [*cells, cell(mean_of(list(row))) if all(cells) else None]


def _published(group: Group, protocol: str, source: str) -> Estimates:
    found = numbers(group.card, DATA, protocol, MODEL)
    return {number.method: Estimate(number.value) for number in found if number.source == source}


def _published_row(label: str, theirs: Mapping[str, Estimates], group: Group, source: str) -> list[TableRow]:
    name = published_name(BENCHMARK, label)
    row = {stream: column[name] for stream, column in theirs.items() if name in column}
    italic = {stream: Highlight(italic=_is_below(one.value, theirs[stream].get(FROZEN))) for stream, one in row.items()}
    cells = [cell(row.get(stream), italic.get(stream)) for stream in theirs]
    return published_row(label, tuple(_with_mean(cells, row.values())) if row else (), _source(group, source))


def _source(group: Group, source: str) -> str:
    card = group.card
    same = (card.data.name, card.run.model.name) == (DATA, MODEL)
    return source_note(card, source) if same else f"{source} (ImageNet, ResNet-50)"


def _published_notes(rows: list[TableRow]) -> list[str]:
    return [PUBLISHED] if has_source(rows) else []


def _ordered(labels: Iterable[str]) -> list[str]:
    return sorted(set(labels), key=lambda label: (order(METHODS)(label.partition("(")[0]), label))


@register("paper-table", "test-time/table-4")
def table_4(groups: list[Group]) -> list[Table]:
    """Reset intervals, on the held-out corruptions."""
    return _on_holdout(groups, 4, "steps between resets", ("rdumb", "periodic-reset"), "reset_every")


@register("paper-table", "test-time/table-7")
def table_7(groups: list[Group]) -> list[Table]:
    """Weight of EATA's Fisher penalty, on the held-out corruptions."""
    return _on_holdout(groups, 7, "weight of the penalty", ("eata",), "penalty_weight")


def _on_holdout(groups: list[Group], number: int, what: str, methods: tuple[str, ...], setting: str) -> list[Table]:
    """Return a setting of some methods on the held-out corruptions."""
    ours = [group for group in groups if group.options["order"] == "holdout"]
    require_runs(ours, BENCHMARK, "with order=holdout")
    tables, source = [], f"RDumb Table {number}"
    for group in average_repeats(ours):
        found = _by_method(point for method in methods for point in sweep_points(group, f"{method}.{setting}"))
        title = titled(f"Table {number}: {what}", group.title)
        tables += _sweep(title, setting, found, _published(group, "holdout", source), _source(group, source))
    return _require_tables(tables, f"{methods[0]} with several settings of `{setting}`, with order=holdout")


@register("paper-table", "test-time/table-8")
def table_8(groups: list[Group]) -> list[Table]:
    """EATA by the weight of its penalty, and RDumb, by streams."""
    require_runs(groups, BENCHMARK)
    sets = group_ignoring(groups, IGNORED)
    tables = [_eata_and_rdumb(titled("Table 8: EATA and RDumb", settings), members) for settings, members in sets]
    return _require_tables([table for table in tables if table.rows], "eata or rdumb")


def _eata_and_rdumb(title: str, members: list[Group]) -> Table:
    streams = _streams(members)
    found = {name: estimates(group, STREAM) for name, group in streams.items()}
    theirs = [_table_8_published(group, _paper_name(name)) for name, group in streams.items()]
    theirs.append(_table_8_published(members[0], "ccc"))
    ccc = [name for name in streams if name.startswith("ccc")]
    rows: list[TableRow] = []
    for label in _ordered(label for column in found.values() for label in column):
        if label.partition("(")[0] not in ("eata", "rdumb"):
            continue
        row = [found[name].get(label) for name in ccc]
        mean = cell(mean_of([one for one in row if one])) if all(row) else None
        rows.append(TableRow(label, (*(cell(column.get(label)) for column in found.values()), mean)))
        name = published_name(BENCHMARK, label)
        cells = tuple(cell(column.get(name)) for column in theirs)
        rows += published_row(label, cells, _source(members[0], "RDumb Table 8"))
    return Table(title, "method", columns(*streams, "mean of ccc"), tuple(rows), (INTERVALS, *_published_notes(rows)))


def _table_8_published(group: Group, protocol: str) -> Estimates:
    """Return the numbers of Table 8; those that it shares with Table 1 are stored there."""
    return {**_published(group, protocol, "RDumb Table 1"), **_published(group, protocol, "RDumb Table 8")}


@register("paper-table", "test-time/table-5")
def table_5(groups: list[Group]) -> list[Table]:
    """Entropy thresholds, mean over the difficulties that were run."""
    ours = [group for group in groups if group.options["order"] == "ccc"]
    require_runs(ours, BENCHMARK, "with order=ccc")
    tables, setting = [], "entropy_fraction"
    for settings, members in group_ignoring(ours, IGNORED):
        streams = _streams(members)
        methods = [(group, name) for name in ("eata", "eta", "rdumb") for group in streams.values()]
        points = (sweep_points(group, f"{name}.{setting}") for group, name in methods)
        found = _by_method(point for some in points for point in some)
        theirs = {k: v for n in (8, 5) for k, v in _published(members[0], "ccc", f"RDumb Table {n}").items()}
        title = f"Table 5: entropy threshold for learning, mean over {', '.join(streams)}"
        source = _source(members[0], "RDumb Tables 5 and 8")
        tables += _sweep(titled(title, settings), setting, found, theirs, source)
    return _require_tables(tables, f"eata, eta or rdumb with several settings of `{setting}`, with order=ccc")


def _by_method(points: Iterable[SweepPoint]) -> dict[str, dict[float, list[Estimate]]]:
    found: dict[str, dict[float, list[Estimate]]] = {}
    for point in points:
        found.setdefault(point.method, {}).setdefault(point.value, []).append(point.score)
    return found


def _sweep(
    title: str, setting: str, found: Mapping[str, Mapping[float, list[Estimate]]], theirs: Estimates, source: str
) -> list[Table]:
    """Return a column per value of the setting; no table if nothing varies."""
    values = sorted({value for by_value in found.values() for value in by_value})
    if len(values) < 2:
        return []
    rows: list[TableRow] = []
    for label, by_value in found.items():
        rows.append(TableRow(label, tuple(cell(_one_or_mean(by_value.get(value, []))) for value in values)))
        name = label.partition("(")[0]
        names = [name if value == DEFAULTS[setting] else f"{name}({setting}={value:g})" for value in values]
        rows += published_row(label, tuple(cell(theirs.get(one)) for one in names), source)
    heads = (f"{setting}={value:g}" for value in values)
    return [Table(title, "method", columns(*heads), tuple(rows), (INTERVALS, *_published_notes(rows)))]


def _one_or_mean(found: list[Estimate]) -> Estimate | None:
    return found[0] if len(found) == 1 else mean_of(found)


def _require_tables(tables: list[Table], which: str) -> list[Table]:
    if not tables:
        raise UserError(f"no run of {BENCHMARK} of {which}: make some with `driftline run`")
    return tables


@register("paper-table", "test-time/table-6")
def table_6(groups: list[Group]) -> list[Table]:
    """Lengths of the paths from one corruption to the next."""
    ours = [group for group in groups if group.options["order"] == "ccc"]
    require_runs(ours, BENCHMARK, "with order=ccc")
    tables = []
    for settings, members in group_ignoring(ours, IGNORED):
        rows: list[TableRow] = []
        for name, group in _streams(members).items():
            lengths = path_lengths(group)
            found = (Estimate(float(getattr(np, stat)(lengths)), cells=len(lengths)) for stat in STATS)
            rows.append(TableRow(name, tuple(cell(one) for one in found) if lengths else (None,) * len(STATS)))
            theirs = {n.stat: n.value for n in numbers(group.card, DATA, name) if n.metric == "path-length"}
            cells = tuple(published(theirs.get(stat)) for stat in STATS)
            rows += published_row(name, cells, _source(group, "RDumb Table 6"))
        title = titled("Table 6: lengths of paths", settings)
        tables.append(Table(title, "stream", columns(*STATS, format=format_amount), tuple(rows), (LENGTHS,)))
    return tables


def path_lengths(group: Group) -> list[int]:
    """Return the number of points of each complete path, over the seeds of a group."""
    by_seed: dict[int, list[int]] = {}
    for run in group.runs:
        schedule: JsonObject = run.card.protocol["schedule"]
        paths = [schedule["paths"][name] for name in schedule["order"]]
        lengths = [len(path) for path in paths if path[-1][0] == 0]
        by_seed[run.seed] = max(by_seed.get(run.seed, []), lengths, key=len)
    return [length for lengths in by_seed.values() for length in lengths]
