"""The tables of RDumb (Press, Schneider, Kuemmerer, Bethge).

`test-time/table-1`: methods by streams. `test-time/table-4`: how often to reset, on the corruptions that are held out.
`test-time/table-5`: how sure an answer must be to be learnt from, mean over difficulties. `test-time/table-6`: how long
the paths are that lead from one corruption to the next. `test-time/table-7`: how strongly EATA is held to its first
weights, on the corruptions that are held out; `test-time/table-8`: two such strengths beside RDumb, by streams.

A number is a mean over seeds, each of which is a mean over the speeds that were run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from driftline import published
from driftline.errors import UserError
from driftline.report.against_frozen import STREAM
from driftline.report.beside import cited, numbers
from driftline.report.cells import Measured, measured, over
from driftline.report.grids import Entry, Grid, Line
from driftline.report.groups import Group, together
from driftline.report.layouts.parts import Layout, entry, place, refuse_none, titled
from driftline.report.marks import Mark
from driftline.report.speeds import over_speeds
from driftline.report.spread import leaders
from driftline.report.sweeps import Swept, swept

BENCHMARK, FROZEN = "test-time", "frozen"
DATA, MODEL = "imagenet-val", "resnet50"  # what the numbers were printed for
METHODS = ("frozen", "bn", "tent", "rpl", "slr", "cpl", "cotta", "eata", "eta", "rdumb")
STREAMS = ("cin-c", "cin-3dcc", "ccc easy", "ccc medium", "ccc hard")
WORLDS = (
    *("order", "calibration", "difficulty", "target", "corruptions", "severity", "images", "speed"),
    *("files", "crop", "jpeg", "frost"),
)
FREE = tuple(f"{BENCHMARK}.{name}" for name in WORLDS)
INTERVALS = (
    "Accuracy in percent: means over seeds, each a mean over speeds where there are several, with 95% t-intervals, "
    "or with one seed and speed block bootstrap intervals over time."
)
MARKS = (
    "Bold: the best of a column and all that cannot be told from it (paired t test on common seeds at 5%, "
    "Holm-corrected for the methods of the column); it takes three seeds. Italic: collapsed, that is, below frozen."
)
PRINTED = (
    "Rows with a source are as printed there, for ResNet-50 on ImageNet and streams of 7.5 million images (cin-c and "
    "holdout: 750,000, cin-3dcc: 600,000) with targets of 40, 20 and 0% in ccc: other data, networks, targets and "
    "shorter streams are not comparable."
)
LENGTHS = (
    "Points on a path from one corruption to the next, both ends included; 41 is the longest there is. Of each seed "
    "its longest stream counts; a path that the end of the stream cuts short does not."
)
STATS = ("min", "max", "mean", "median")
USUAL = {"every": 1000, "entropy": 0.4, "strength": 2000}
Cells = Mapping[str, Measured]


def _by_stream(found: list[Group]) -> list[Grid]:
    """Table 1."""
    refuse_none(found, BENCHMARK)
    return [_table_1(titled("Table 1: accuracy", told), members) for told, members in together(found, FREE)]


def _table_1(title: str, members: list[Group]) -> Grid:
    streams = _columns(members)
    cells = {name: measured(group, STREAM) for name, group in streams.items()}
    theirs = {name: _printed(group, _plain(name), "RDumb Table 1") for name, group in streams.items()}
    marked = {name: _marks(column) for name, column in cells.items()}
    lines = []
    for label in _ordered(label for column in cells.values() for label in column):
        row = {name: column[label] for name, column in cells.items() if label in column}
        entries = [entry(row.get(name), marked[name].get(label)) for name in streams]
        lines.append(Line(label, tuple(_with_mean(entries, row.values()))))
        lines += _printed_line(label, theirs, members[0], "RDumb Table 1")
    heads = (*streams, *(["mean"] if len(streams) > 1 else []))
    return Grid(title, "method", heads, tuple(lines), (INTERVALS, MARKS, *_said(lines)))


def _columns(members: Iterable[Group]) -> dict[str, Group]:
    """The groups by the name of their stream, as the paper orders them."""
    columns: dict[str, Group] = {}
    for group in over_speeds(members):
        if (name := stream_name(group)) in columns:
            raise UserError(f"there are two kinds of runs for {name}: name the runs that the table is of")
        columns[name] = group
    return {name: columns[name] for name in sorted(columns, key=lambda name: place(STREAMS)(_plain(name)))}


def stream_name(group: Group) -> str:
    """What a column is called: the order and what is not usual in it."""
    options = group.card["run"]["options"]
    order, target = options["order"], options["target"]
    own = target is not None and options["corruptions"]  # nothing of the difficulty is left
    name = f"ccc {options['difficulty']}" if order == "ccc" and not own else order
    told = [f"{target:g}%"] if order == "ccc" and target is not None else []
    told += [f"severity {options['severity']:g}"] if order not in ("ccc", "gradual") and options["severity"] < 5 else []
    told += [str(options["corruptions"])] if options["corruptions"] else []
    return ", ".join([name, *told])


def _plain(name: str) -> str:
    """The paper's name of a stream that differs from its own in the target alone."""
    return re.sub(r", [\d.]+%$", "", name)


def _marks(cells: Cells) -> dict[str, Mark]:
    best = leaders({label: cell.by_seed for label, cell in cells.items()}, "higher")
    return {label: Mark(label in best, _below(cell.value, cells.get(FROZEN))) for label, cell in cells.items()}


def _below(value: float, frozen: Measured | None) -> bool:
    return frozen is not None and value < frozen.value


def _with_mean(entries: list[Entry | None], row: Iterable[Measured]) -> list[Entry | None]:
    """A row with its mean at the end, if there are several streams and all have a number."""
    if len(entries) < 2:
        return entries
    return [*entries, over(list(row)) if all(entries) else None]


def _printed(group: Group, protocol: str, source: str) -> Cells:
    found = numbers(group.card, DATA, protocol, MODEL)
    return {number.method: Measured(number.value) for number in found if number.source == source}


def _printed_line(label: str, theirs: Mapping[str, Cells], group: Group, source: str) -> list[Line]:
    name = published.printed_as(BENCHMARK, label)
    row = {stream: column[name] for stream, column in theirs.items() if name in column}
    if not row:
        return []
    marked = {stream: Mark(italic=_below(cell.value, theirs[stream].get(FROZEN))) for stream, cell in row.items()}
    entries = [entry(row.get(stream), marked.get(stream)) for stream in theirs]
    return [Line(label, tuple(_with_mean(entries, row.values())), _source(group, source))]


def _source(group: Group, source: str) -> str:
    card = group.card
    same = (card["data"]["name"], card["run"]["model"]["name"]) == (DATA, MODEL)
    return cited(card, source) if same else f"{source} (ImageNet, ResNet-50)"


def _said(lines: Iterable[Line]) -> list[str]:
    return [PRINTED] if any(line.source for line in lines) else []


def _ordered(labels: Iterable[str]) -> list[str]:
    return sorted(set(labels), key=lambda label: (place(METHODS)(label.partition("(")[0]), label))


def _on_holdout(number: int, what: str, methods: tuple[str, ...], setting: str, found: list[Group]) -> list[Grid]:
    """Tables 4 and 7: a setting of some methods on the corruptions that are held out."""
    ours = [group for group in found if group.card["run"]["options"]["order"] == "holdout"]
    refuse_none(ours, BENCHMARK, "with order=holdout")
    grids, table = [], f"RDumb Table {number}"
    for group in over_speeds(ours):
        rows = _by_method(one for method in methods for one in swept(group, f"{method}.{setting}"))
        title = titled(f"Table {number}: {what}", group.title)
        grids += _sweep(title, setting, rows, _printed(group, "holdout", table), _source(group, table))
    return _some(grids, f"{methods[0]} with several settings of `{setting}`, with order=holdout")


def _strengths(found: list[Group]) -> list[Grid]:
    """Table 8: EATA by its strength, and RDumb, by streams."""
    refuse_none(found, BENCHMARK)
    grids = [_table_8(titled("Table 8: EATA and RDumb", told), members) for told, members in together(found, FREE)]
    return _some([grid for grid in grids if grid.lines], "eata or rdumb")


def _table_8(title: str, members: list[Group]) -> Grid:
    streams = _columns(members)
    cells = {name: measured(group, STREAM) for name, group in streams.items()}
    theirs = {name: _table_8_printed(group, _plain(name)) for name, group in streams.items()}
    means = _table_8_printed(members[0], "ccc")
    hard = [name for name in streams if name.startswith("ccc")]
    lines = []
    for label in _ordered(label for column in cells.values() for label in column):
        if label.partition("(")[0] not in ("eata", "rdumb"):
            continue
        row = [cells[name].get(label) for name in hard]
        mean = [over([cell for cell in row if cell]) if all(row) else None]
        lines.append(Line(label, (*(entry(column.get(label), None) for column in cells.values()), *mean)))
        name = published.printed_as(BENCHMARK, label)
        beside = [entry(column.get(name), None) for column in [*theirs.values(), means]]
        lines += [Line(label, tuple(beside), _source(members[0], "RDumb Table 8"))] if any(beside) else []
    heads = (*streams, "mean of ccc")
    return Grid(title, "method", heads, tuple(lines), (INTERVALS, *_said(lines)))


def _table_8_printed(group: Group, protocol: str) -> Cells:
    """Table 8's numbers; those that it has in common with Table 1 are kept there."""
    return {**_printed(group, protocol, "RDumb Table 1"), **_printed(group, protocol, "RDumb Table 8")}


def _thresholds(found: list[Group]) -> list[Grid]:
    """Table 5: means over the difficulties that were run."""
    ours = [group for group in found if group.card["run"]["options"]["order"] == "ccc"]
    refuse_none(ours, BENCHMARK, "with order=ccc")
    grids = []
    for told, members in together(ours, FREE):
        streams = _columns(members)
        methods = [(group, name) for name in ("eata", "eta", "rdumb") for group in streams.values()]
        rows = _by_method(one for group, name in methods for one in swept(group, f"{name}.entropy"))
        theirs = {k: v for table in (8, 5) for k, v in _printed(members[0], "ccc", f"RDumb Table {table}").items()}
        title = f"Table 5: entropy below which answers are learnt from, mean over {', '.join(streams)}"
        grids += _sweep(titled(title, told), "entropy", rows, theirs, _source(members[0], "RDumb Tables 5 and 8"))
    return _some(grids, "eata, eta or rdumb with several settings of `entropy`, with order=ccc")


def _by_method(found: Iterable[Swept]) -> dict[str, dict[float, list[Measured]]]:
    rows: dict[str, dict[float, list[Measured]]] = {}
    for one in found:
        rows.setdefault(one.method, {}).setdefault(one.at, []).append(one.cell)
    return rows


def _sweep(
    title: str, setting: str, rows: Mapping[str, Mapping[float, list[Measured]]], theirs: Cells, source: str
) -> list[Grid]:
    """A column per value of the setting; no table where nothing varies."""
    values = sorted({at for cells in rows.values() for at in cells})
    if len(values) < 2:
        return []
    lines = []
    for label, cells in rows.items():
        lines.append(Line(label, tuple(_one(cells[at]) if at in cells else None for at in values)))
        name = label.partition("(")[0]
        called = [name if at == USUAL[setting] else f"{name}({setting}={at:g})" for at in values]
        beside = tuple(entry(theirs.get(one), None) for one in called)
        lines += [Line(label, beside, source)] if any(beside) else []
    heads = tuple(f"{setting}={at:g}" for at in values)
    return [Grid(title, "method", heads, tuple(lines), (INTERVALS, *_said(lines)))]


def _one(cells: list[Measured]) -> Entry | None:
    return cells[0].entry() if len(cells) == 1 else over(cells)


def _some(grids: list[Grid], which: str) -> list[Grid]:
    if not grids:
        raise UserError(f"no run of {BENCHMARK} of {which}: make some with `driftline run`")
    return grids


def _lengths(found: list[Group]) -> list[Grid]:
    """Table 6."""
    ours = [group for group in found if group.card["run"]["options"]["order"] == "ccc"]
    refuse_none(ours, BENCHMARK, "with order=ccc")
    grids = []
    for told, members in together(ours, FREE):
        lines = []
        for name, group in _columns(members).items():
            lengths = traversals(group)
            entries = (Entry(float(getattr(np, stat)(lengths)), of=len(lengths)) if lengths else None for stat in STATS)
            lines.append(Line(name, tuple(entries)))
            found_there = {n.stat: n.value for n in numbers(group.card, DATA, name) if n.metric == "path-length"}
            beside = tuple(Entry(found_there[stat]) if stat in found_there else None for stat in STATS)
            lines += [Line(name, beside, _source(group, "RDumb Table 6"))] if any(beside) else []
        title = titled("Table 6: lengths of paths", told)
        grids.append(Grid(title, "stream", STATS, tuple(lines), (LENGTHS,), share=False))
    return grids


def traversals(group: Group) -> list[int]:
    """How many points each whole path has, over the seeds of a group."""
    by_seed: dict[int, list[int]] = {}
    for run in group.runs:
        told: dict[str, Any] = run.card["protocol"]["schedule"]
        paths = [told["paths"][name] for name in told["order"]]
        lengths = [len(path) for path in paths if path[-1][0] == 0]
        by_seed[run.seed] = max(by_seed.get(run.seed, []), lengths, key=len)
    return [length for lengths in by_seed.values() for length in lengths]


LAYOUTS: dict[str, Layout] = {
    f"{BENCHMARK}/table-1": _by_stream,
    f"{BENCHMARK}/table-4": partial(_on_holdout, 4, "steps between resets", ("rdumb", "resetting"), "every"),
    f"{BENCHMARK}/table-5": _thresholds,
    f"{BENCHMARK}/table-6": _lengths,
    f"{BENCHMARK}/table-7": partial(_on_holdout, 7, "strength of the penalty", ("eata",), "strength"),
    f"{BENCHMARK}/table-8": _strengths,
}
