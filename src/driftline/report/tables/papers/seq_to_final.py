"""The tables of Seq-to-Final (Ji, Alaa, Sontag).

Means are over the cells that are there, ours and published alike; the means that the paper prints in its side-module
columns are of other cells than those above them (see `driftline.published.numbers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from driftline.errors import UserError
from driftline.published.numbers import published_name
from driftline.registry import register
from driftline.report.analysis.estimates import Estimate, estimates, mean_of, std_of
from driftline.report.analysis.groups import Group, group_ignoring
from driftline.report.analysis.highlights import PLAIN, Highlight, highlights, highlights_of_means
from driftline.report.analysis.published import numbers, source_note
from driftline.report.tables.model import Table, TableRow
from driftline.report.tables.papers.base import cell, columns, order, published, published_row, require_runs, titled

BENCHMARK = "seq-to-final"
TOP = ("baseline", "seq-erm", "seq-irm", "seq-dro", "seq-ft", "lp-ft", "i-ft", "d-ft", "st-1", "st-b")
BOTTOM = ("sft", "seq-ewc", "sst-1", "sst-b", "jm", "jst-1", "jst-b", "oracle")
METHODS = ("oracle", *TOP, *BOTTOM[:-1])  # as in Table 2
NETWORKS = tuple(f"{family}-{depth}" for family in ("conv", "dense", "res") for depth in (1, 2, 3, 4))
SEQUENCES = {8: "CLR", 9: "RCL", 10: "rrr", 11: "TTT", 12: "sss", 13: "time"}
LENGTHS = tuple(f"rot{n}" for n in range(2, 9))
VARIANTS = {
    "baseline": "Final step alone",
    "seq-ft": "Fine-tuning",
    "seq-ft(penalty=l2)": "Fine-tuning, pulled to previous",
    "seq-ft(penalty=l2, from_initial=True)": "Initial weights, pulled to previous",
    "seq-ft(structure=separate, ends=random, tied=False)": "Frozen joint, initial weights",
    "seq-ft(structure=separate, tied=False)": "Frozen joint, previous weights",
    "seq-ft(structure=separate)": "Frozen joint, previous weights, pulled to previous",
    "seq-ft(structure=separate, ends=random)": "Frozen joint, initial weights, pulled to previous",
}
NOTE = (
    "Final accuracy in percent: means over seeds with 95% t-intervals, or with one seed bootstrap intervals over test "
    "examples. Bold: within 2 points of the best of the {line}, or italic. Italic: within 2 points of the oracle, or "
    "better."
)
MEANS = (
    "Mean and Std (population) are over the cells above. A mean is bold (italic) if the average difference from the "
    "best (the oracle) of each row is less than one standard deviation below 0."
)
PUBLISHED = (
    "Rows with a source are as published there, one run per cell; their means are of the cells shown here. SFT's "
    "schedule was selected there on test data, and the history of I-FT and D-FT includes the final step."
)
CAVEATS = {
    "sss": "Its numbers for sss are not comparable: its code shows all sub-classes at the first step.",
    "time": "Its numbers for Portraits are not comparable: its code makes the pixels almost constant.",
}

Rows = Mapping[str, Group]
"""The group of runs behind each row."""
Values = Mapping[str, float]
"""Published numbers by method."""


@register("paper-table", "seq-to-final/table-2")
def table_2(groups: list[Group]) -> list[Table]:
    """Methods by sequences, means over networks."""
    require_runs(groups, BENCHMARK)
    options = (f"{BENCHMARK}.{name}" for name in ("shifts", "first", "final"))
    sets = group_ignoring(groups, ["model", "data", "data.", "fingerprint", *options])
    return [_over_networks(titled("Table 2: means over networks", settings), members) for settings, members in sets]


def _per_network(groups: list[Group], *, number: int) -> list[Table]:
    """Networks by methods, in two halves, for one sequence."""
    sequence, tables = SEQUENCES[number], []
    ours = [group for group in groups if _shifts(group) == sequence]
    require_runs(ours, BENCHMARK, f"with shifts={sequence}")
    for settings, members in group_ignoring(ours, ["model"]):
        rows = _rows(members, _network, NETWORKS)
        tables += _halves(titled(f"Table {number}: {sequence}", settings), "network", rows, f"Table {number}")
    return tables


for number in SEQUENCES:
    register("paper-table", f"seq-to-final/table-{number}")(partial(_per_network, number=number))


@register("paper-table", "seq-to-final/table-14")
def table_14(groups: list[Group]) -> list[Table]:
    """Lengths of a sequence of rotations by methods."""
    ours, tables = [group for group in groups if _shifts(group) in LENGTHS], []
    require_runs(ours, BENCHMARK, "with shifts=rot2 to rot8")
    for settings, members in group_ignoring(ours, [f"{BENCHMARK}.shifts", f"{BENCHMARK}.sizes"]):
        rows = _rows(members, _shifts, LENGTHS)
        title = f"Table 14: lengths of sequences of rotations, {_network(members[0])}"
        tables += _halves(titled(title, settings), "sequence", rows, "Table 14")
    return tables


@register("paper-table", "seq-to-final/table-15")
def table_15(groups: list[Group]) -> list[Table]:
    """Variants of fine-tuning: the value of initial weights."""
    ours = [group for group in groups if len([m for m in group.methods if m in VARIANTS]) > 1]
    require_runs(ours, BENCHMARK, "of two methods or more of recipe:seq-to-final/table-15.full")
    tables = []
    for group in ours:
        found, values = estimates(group), _published(group, "Seq-to-Final Table 15")
        rows = []
        for label, name in VARIANTS.items():
            if label in found:
                rows.append(TableRow(f"{name}: {label}", (cell(found[label]),)))
                source = source_note(group.card, "Seq-to-Final Table 15")
                rows += published_row(name, (published(values.get(label)),), source)
        notes = (NOTE.partition(" Bold")[0], *_caveats([group], [values]))
        tables.append(Table(f"Table 15: {group.title}", "method", columns("final accuracy"), tuple(rows), notes))
    return tables


def _shifts(group: Group) -> str:
    return str(group.options["shifts"])


def _network(group: Group) -> str:
    return str(group.card.run.model.name)


def _halves(title: str, row_header: str, groups: Rows, source: str) -> list[Table]:
    """Return the methods that do not use the order of history, then those that do and the oracle."""
    ours = {name: estimates(group) for name, group in groups.items()}
    plain = {name: {label: one.value for label, one in found.items()} for name, found in ours.items()}
    marked = {name: highlights(values) for name, values in plain.items()}
    means = highlights_of_means(list(plain.values()))
    theirs = {name: _published(group, f"Seq-to-Final {source}") for name, group in groups.items()}
    tables = []
    for half, methods in (("first half", TOP), ("second half", BOTTOM)):
        labels = _labels(methods, (label for found in ours.values() for label in found))
        rows: list[TableRow] = []
        for name, group in groups.items():
            cells = (cell(ours[name].get(label), marked[name].get(label)) for label in labels)
            rows.append(TableRow(name, tuple(cells)))
            cells = (published(theirs[name].get(method)) for method in labels.values())
            rows += published_row(name, tuple(cells), source_note(group.card, f"Seq-to-Final {source}"))
        paper = source_note(next(iter(groups.values())).card, f"Seq-to-Final {source}")
        rows += _summaries(labels, ours, means, theirs, paper) if len(groups) > 1 else []
        tables.append(Table(f"{title} ({half})", row_header, columns(*labels), tuple(rows)))
    more = [MEANS] if len(groups) > 1 else []
    notes = (NOTE.format(line="row"), *more, *_caveats(groups.values(), theirs.values()))
    return [tables[0], replace(tables[1], notes=notes)]


def _summaries(
    labels: Mapping[str, str],
    ours: Mapping[str, Mapping[str, Estimate]],
    means: Mapping[str, Highlight],
    theirs: Mapping[str, Values],
    paper: str,
) -> list[TableRow]:
    """Return mean and standard deviation over rows: of our numbers, then of the published ones."""
    found = {label: [row[label] for row in ours.values() if label in row] for label in labels}
    printed = {label: [Estimate(row[name]) for row in theirs.values() if name in row] for label, name in labels.items()}
    rows = []
    for name, summary in (("Mean", mean_of), ("Std", std_of)):
        marked = means if name == "Mean" else {}
        cells = (cell(summary(found[label]), marked.get(label, PLAIN)) for label in labels)
        rows.append(TableRow(name, tuple(cells)))
        rows += published_row(name, tuple(cell(summary(printed[label])) for label in labels), paper)
    return rows


def _over_networks(title: str, members: list[Group]) -> Table:
    sequences = tuple(SEQUENCES.values())
    worlds = sorted({_world(group) for group in members}, key=lambda world: (order(sequences)(world[0]), world[1]))
    found = {world: _by_method(group for group in members if _world(group) == world) for world in worlds}
    marked = {world: highlights({name: _mean(ours) for name, (ours, _) in by.items()}) for world, by in found.items()}
    rows: list[TableRow] = []
    for label in _labels(METHODS, (label for by_method in found.values() for label in by_method)):
        pairs = [found[world].get(label, ([], [])) for world in worlds]
        styles = [marked[world].get(label, PLAIN) for world in worlds]
        cells = (cell(mean_of(ours), style) for (ours, _), style in zip(pairs, styles, strict=True))
        rows.append(TableRow(label, tuple(cells)))
        theirs = tuple(cell(mean_of(printed)) for _, printed in pairs)
        rows += published_row(label, theirs, source_note(members[0].card, "Seq-to-Final"))
    networks = ", ".join(sorted({_network(group) for group in members}, key=order(NETWORKS)))
    notes = [NOTE.format(line="column"), f"Means over networks ({networks}); n where they differ in number."]
    notes += _caveats(members, [{"published": 1.0} for row in rows if row.source])
    heads = (f"{shifts} on {data}" for shifts, data in worlds)
    return Table(title, "method", columns(*heads), tuple(rows), tuple(notes))


def _world(group: Group) -> tuple[str, str]:
    return _shifts(group), str(group.card.data.name)


def _by_method(members: Iterable[Group]) -> dict[str, tuple[list[Estimate], list[Estimate]]]:
    """Return for each method its estimates over networks, and the published numbers of the same networks."""
    found: dict[str, tuple[list[Estimate], list[Estimate]]] = {}
    for group in members:
        number = next((n for n, sequence in SEQUENCES.items() if sequence == _shifts(group)), None)
        values = _published(group, f"Seq-to-Final Table {number}")
        for label, one in estimates(group).items():
            ours, theirs = found.setdefault(label, ([], []))
            ours.append(one)
            name = published_name(BENCHMARK, label)
            theirs += [Estimate(values[name])] if name in values else []
    return found


def _mean(found: list[Estimate]) -> float:
    return sum(one.value for one in found) / len(found)


def _rows(members: Iterable[Group], name: Callable[[Group], str], names: tuple[str, ...]) -> dict[str, Group]:
    rows: dict[str, Group] = {}
    for group in sorted(members, key=lambda group: order(names)(name(group))):
        if name(group) in rows:
            raise UserError(f"there are two kinds of runs for {name(group)}: name the runs that the table is of")
        rows[name(group)] = group
    return rows


def _labels(methods: Iterable[str], labels: Iterable[str]) -> dict[str, str]:
    """Return the display names of these methods, each with the method's name; methods that were not run included."""
    known = sorted(set(labels))
    found = {}
    for method in methods:
        matching = [label for label in known if published_name(BENCHMARK, label) == method]
        found.update({label: method for label in matching or [method]})
    return found


def _published(group: Group, source: str) -> dict[str, float]:
    card = group.card
    found = numbers(card, card.data.name, _shifts(group), _network(group))
    return {number.method: number.value for number in found if number.source == source}


def _caveats(members: Iterable[Group], theirs: Iterable[Values]) -> list[str]:
    if not any(theirs):
        return []
    return [PUBLISHED, *(CAVEATS[name] for name in dict.fromkeys(map(_shifts, members)) if name in CAVEATS)]
