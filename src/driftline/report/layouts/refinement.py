"""The tables of Continual Model Refinement (Lin et al.).

`refinement/table-1`: methods by metrics, their means over steps and their final values. `refinement/table-2`: what
methods gain in OEC(T) over the model that never changes, by what the stream is like.
"""

from __future__ import annotations

from collections.abc import Iterable

from driftline import published
from driftline.benchmarks.refinement_scores import names
from driftline.errors import UserError
from driftline.report.beside import cited, printed
from driftline.report.cells import Measured, measured
from driftline.report.gains import gains
from driftline.report.grids import Entry, Grid, Line
from driftline.report.groups import Group, together
from driftline.report.layouts.parts import Layout, entry, place, refuse_none, titled
from driftline.report.marks import Mark
from driftline.report.spread import leaders

BENCHMARK, FROZEN = "refinement", "frozen"
FIRST, SECOND = "CMR Table 1", "CMR Table 2"
GAIN = ("oec-gain", "final")
METHODS = (
    *("frozen", "cft", "online-l2", "online-ewc", "er(every=3)", "er"),
    *("maxloss(every=3)", "maxloss", "maxloss(candidates=512)", "maxloss(candidates=1024)"),
    *("mir(every=3)", "mir", "mir(candidates=512)", "mir(candidates=1024)", "mir+l2", "offline"),
)
METRICS = ("ukr", "okr", "csr", "kg", "oec")
COLUMNS = (("efr", "mean"), *((name, "mean") for name in METRICS), *((name, "final") for name in METRICS))
DYNAMICS = tuple(
    f"alpha=0.9, beta={beta}, gamma={gamma}"
    for beta, gamma in (("0.5", "0.8"), ("0.1", "0.8"), ("0.9", "0.8"), ("0.5", "0.5"), ("0.5", "0.2"))
)
INTERVALS = (
    "In percent: means over seeds with 95% t-intervals, or with one seed bootstrap intervals over examples, cut at 0 "
    "and 100. A column without (T) is a mean over steps, one with (T) the value at the last."
)
GAINS = "In points: means over seeds of OEC(T) less frozen's on the same seed; 95% t-intervals, which take two seeds."
BOLD = (
    "Bold: the best of a {line} and all that cannot be told from it (paired t test on common seeds at 5%, "
    "Holm-corrected for the methods of the {line}); it takes three seeds."
)
PRINTED = (
    "Rows with a source are as printed there: one run on one stream of its own data, scored by the model that enters a "
    "step"
)
OFFLINE = "Its offline CSR is of the finished model, and that model was chosen by KG."


def _by_metric(found: list[Group]) -> list[Grid]:
    """Table 1, for each kind of run."""
    refuse_none(found, BENCHMARK)
    return [_table_1(group) for group in found]


def _table_1(group: Group) -> Grid:
    options = group.card["run"]["options"]
    called = names(options["indexing"], options["csr"])
    cells = [measured(group, called[metric], stat) for metric, stat in COLUMNS]
    best = [leaders({label: cell.by_seed for label, cell in column.items()}, "higher") for column in cells]
    lines = []
    for label in _ordered(group.methods):
        marked = zip(cells, best, strict=True)
        lines.append(Line(label, tuple(entry(column.get(label), Mark(bold=label in top)) for column, top in marked)))
        theirs = printed(group.card, label).get(FIRST, {})
        beside = tuple(Entry(theirs[column]) if column in theirs else None for column in COLUMNS)
        lines += [Line(label, beside, cited(group.card, FIRST))] if any(beside) else []
    heads = tuple(metric.upper() + ("(T)" if stat == "final" else "") for metric, stat in COLUMNS)
    sourced = [line for line in lines if line.source]
    notes = [INTERVALS, BOLD.format(line="column"), *([f"{PRINTED}."] if sourced else [])]
    notes += [OFFLINE] if any(line.name.startswith("offline") for line in sourced) else []
    return Grid(f"Table 1: {group.title}", "method", heads, tuple(lines), tuple(notes))


def _by_dynamics(found: list[Group]) -> list[Grid]:
    """Table 2: a row for each alpha, beta and gamma."""
    refuse_none(found, BENCHMARK)
    able = [group for group in found if gains(group)]
    if not able:
        raise UserError(
            f"no run of {BENCHMARK} has {FROZEN} beside another method, on the same seed, data and stream: gains are "
            f"over it, so run it too with --methods {FROZEN},..."
        )
    free = [f"{BENCHMARK}.{name}" for name in ("alpha", "beta", "gamma")]
    return [_table_2(titled("Table 2: gain in OEC(T)", told), members) for told, members in together(able, free)]


def _table_2(title: str, members: list[Group]) -> Grid:
    rows = {_dynamics(group): group for group in sorted(members, key=lambda group: place(DYNAMICS)(_dynamics(group)))}
    ours = {name: gains(group) for name, group in rows.items()}
    columns = _ordered(dict.fromkeys(label for cells in ours.values() for label in cells))
    lines = []
    for name, group in rows.items():
        lines.append(Line(name, _marked(ours[name], columns)))
        beside = tuple(_printed_gain(group, label) for label in columns)
        lines += [Line(name, beside, cited(group.card, SECOND))] if any(beside) else []
    sourced = [f"{PRINTED}; its replay methods have k = 3."] if any(line.source for line in lines) else []
    notes = (GAINS, BOLD.format(line="row"), *sourced)
    return Grid(title, "stream", tuple(columns), tuple(lines), notes)


def _marked(cells: dict[str, Measured], columns: Iterable[str]) -> tuple[Entry | None, ...]:
    best = leaders({label: cell.by_seed for label, cell in cells.items()}, "higher")
    return tuple(entry(cells.get(label), Mark(bold=label in best)) for label in columns)


def _printed_gain(group: Group, label: str) -> Entry | None:
    value = printed(group.card, label).get(SECOND, {}).get(GAIN)
    return None if value is None else Entry(value)


def _dynamics(group: Group) -> str:
    return str(group.card["protocol"]["protocol"])


def _ordered(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (place(METHODS)(published.printed_as(BENCHMARK, label)), label))


LAYOUTS: dict[str, Layout] = {f"{BENCHMARK}/table-1": _by_metric, f"{BENCHMARK}/table-2": _by_dynamics}
