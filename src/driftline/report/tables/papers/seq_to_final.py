"""The tables of Seq-to-Final (Ji, Alaa, Sontag).

`seq-to-final/table-2`: methods by sequences, means over networks. `table-8` to `table-13`: networks by methods, in two
halves, for one sequence each. `table-14`: lengths of a sequence of rotations by methods. `table-15`: what initial
weights are worth.

Means are over the cells that are there, ours and printed alike; the means that the paper prints in its side-module
columns are of other cells than those above them (`driftline.published`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from driftline import published
from driftline.errors import UserError
from driftline.report.analysis.estimates import Entry, Measured, measured, over, spread
from driftline.report.analysis.groups import Group, together
from driftline.report.analysis.highlights import PLAIN, Mark, marks, mean_marks
from driftline.report.analysis.published import cited, numbers
from driftline.report.tables.paper_grid import Grid, Line
from driftline.report.tables.papers.base import Layout, entry, place, refuse_none, titled

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
    "seq-ft(pull=l2)": "Fine-tuning, pulled to previous",
    "seq-ft(pull=l2, afresh=True)": "Initial weights, pulled to previous",
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
PRINTED = (
    "Rows with a source are as printed there, one run per cell; their means are of the cells shown here. SFT's "
    "schedule was chosen there on test data, and the history of I-FT and D-FT includes the final step."
)
CAVEATS = {
    "sss": "Its numbers for sss are not comparable: its code shows all sub-classes at the first step.",
    "time": "Its numbers for Portraits are not comparable: its code makes the pixels almost constant.",
}

Rows = Mapping[str, Group]
"""The group of runs behind each row."""


def _shifts(group: Group) -> str:
    return str(group.card["run"]["options"]["shifts"])


def _network(group: Group) -> str:
    return str(group.card["run"]["model"]["name"])


def _per_network(number: int, found: list[Group]) -> list[Grid]:
    """Tables 8 to 13."""
    sequence, grids = SEQUENCES[number], []
    ours = [group for group in found if _shifts(group) == sequence]
    refuse_none(ours, BENCHMARK, f"with shifts={sequence}")
    for told, members in together(ours, ["model"]):
        rows = _rows(members, _network, NETWORKS)
        grids += _halves(titled(f"Table {number}: {sequence}", told), "network", rows, f"Table {number}")
    return grids


def _lengths(found: list[Group]) -> list[Grid]:
    """Table 14."""
    ours, grids = [group for group in found if _shifts(group) in LENGTHS], []
    refuse_none(ours, BENCHMARK, "with shifts=rot2 to rot8")
    for told, members in together(ours, [f"{BENCHMARK}.shifts", f"{BENCHMARK}.sizes"]):
        rows = _rows(members, _shifts, LENGTHS)
        title = f"Table 14: lengths of sequences of rotations, {_network(members[0])}"
        grids += _halves(titled(title, told), "sequence", rows, "Table 14")
    return grids


def _halves(title: str, corner: str, rows: Rows, source: str) -> list[Grid]:
    """The methods that do not use the order of history, then those that do and the oracle."""
    ours = {name: measured(group) for name, group in rows.items()}
    marked = {name: marks({label: cell.value for label, cell in cells.items()}) for name, cells in ours.items()}
    means = mean_marks([{label: cell.value for label, cell in cells.items()} for cells in ours.values()])
    beside = {name: _printed(group, f"Seq-to-Final {source}") for name, group in rows.items()}
    grids = []
    for half, methods in (("first half", TOP), ("second half", BOTTOM)):
        columns = _columns(methods, (label for cells in ours.values() for label in cells))
        lines = []
        for name, group in rows.items():
            entries = (entry(ours[name].get(label), marked[name].get(label)) for label in columns)
            lines.append(Line(name, tuple(entries)))
            lines += _printed_line(name, columns, beside[name], cited(group.card, f"Seq-to-Final {source}"))
        paper = cited(next(iter(rows.values())).card, f"Seq-to-Final {source}")
        lines += _summaries(columns, ours, means, beside, paper) if len(rows) > 1 else []
        grids.append(Grid(f"{title} ({half})", corner, tuple(columns), tuple(lines)))
    notes = [NOTE.format(line="row"), *([MEANS] if len(rows) > 1 else []), *_caveats(rows.values(), beside.values())]
    return [grids[0], Grid(**{**vars(grids[1]), "notes": tuple(notes)})]


def _summaries(
    columns: Mapping[str, str],
    ours: Mapping[str, Mapping[str, Measured]],
    means: Mapping[str, Mark],
    beside: Mapping[str, Mapping[str, float]],
    paper: str,
) -> list[Line]:
    """Mean and standard deviation over rows: ours, then of what was printed for them."""
    cells = {label: [row[label] for row in ours.values() if label in row] for label in columns}
    theirs = {label: [row[name] for row in beside.values() if name in row] for label, name in columns.items()}
    printed = {label: [Measured(value) for value in values] for label, values in theirs.items()}
    lines = []
    for name, what in (("Mean", over), ("Std", spread)):
        marked = means if name == "Mean" else {}
        lines.append(Line(name, tuple(what(cells[label], marked.get(label, PLAIN)) for label in columns)))
        if any(theirs.values()):
            lines.append(Line(name, tuple(what(printed[label], PLAIN) for label in columns), paper))
    return lines


def _over_networks(found: list[Group]) -> list[Grid]:
    """Table 2."""
    refuse_none(found, BENCHMARK)
    free = ["model", "data", "data.", "fingerprint", *(f"{BENCHMARK}.{name}" for name in ("shifts", "first", "final"))]
    return [_table_2(titled("Table 2: means over networks", told), members) for told, members in together(found, free)]


def _table_2(title: str, members: list[Group]) -> Grid:
    order = tuple(SEQUENCES.values())
    worlds = sorted({_world(group) for group in members}, key=lambda world: (place(order)(world[0]), world[1]))
    ours = {world: _gathered(group for group in members if _world(group) == world) for world in worlds}
    marked = {world: marks({name: _mean(of) for name, (of, _) in found.items()}) for world, found in ours.items()}
    lines = []
    for label in _columns(METHODS, (label for found in ours.values() for label in found)):
        pairs = [ours[world].get(label, ([], [])) for world in worlds]
        means = (over(cells, marked[w].get(label, PLAIN)) for w, (cells, _) in zip(worlds, pairs, strict=True))
        printed = tuple(over(theirs) for _, theirs in pairs)
        lines.append(Line(label, tuple(means)))
        lines += [Line(label, printed, cited(members[0].card, "Seq-to-Final"))] if any(printed) else []
    networks = ", ".join(sorted({_network(group) for group in members}, key=place(NETWORKS)))
    notes = [NOTE.format(line="column"), f"Means over networks ({networks}); n where they differ in number."]
    beside = [{"printed": line} for line in lines if line.source]
    heads = tuple(f"{shifts} on {data}" for shifts, data in worlds)
    return Grid(title, "method", heads, tuple(lines), (*notes, *_caveats(members, beside)))


def _world(group: Group) -> tuple[str, str]:
    return _shifts(group), str(group.card["data"]["name"])


def _gathered(members: Iterable[Group]) -> dict[str, tuple[list[Measured], list[Measured]]]:
    """For each method its cells over networks, and what was printed for the same networks."""
    found: dict[str, tuple[list[Measured], list[Measured]]] = {}
    for group in members:
        number = next((n for n, sequence in SEQUENCES.items() if sequence == _shifts(group)), None)
        theirs = _printed(group, f"Seq-to-Final Table {number}")
        for label, cell in measured(group).items():
            ours, printed = found.setdefault(label, ([], []))
            ours.append(cell)
            name = published.printed_as(BENCHMARK, label)
            printed += [Measured(theirs[name])] if name in theirs else []
    return found


def _mean(cells: list[Measured]) -> float:
    return sum(cell.value for cell in cells) / len(cells)


def _initialisation(found: list[Group]) -> list[Grid]:
    """Table 15."""
    ours = [group for group in found if len([m for m in group.methods if m in VARIANTS]) > 1]
    refuse_none(ours, BENCHMARK, "of two methods or more of recipes/seq-to-final/table-15.full.yaml")
    grids = []
    for group in ours:
        cells, theirs = measured(group), _printed(group, "Seq-to-Final Table 15")
        lines = []
        for label, words in VARIANTS.items():
            lines += [Line(f"{words}: {label}", (cells[label].entry(),))] if label in cells else []
            if label in cells and label in theirs:
                lines.append(Line(words, (Entry(theirs[label]),), cited(group.card, "Seq-to-Final Table 15")))
        notes = [NOTE.partition(" Bold")[0], *_caveats([group], [theirs])]
        grids.append(Grid(f"Table 15: {group.title}", "method", ("final accuracy",), tuple(lines), tuple(notes)))
    return grids


def _rows(members: Iterable[Group], named: Callable[[Group], str], order: tuple[str, ...]) -> dict[str, Group]:
    rows: dict[str, Group] = {}
    for group in sorted(members, key=lambda group: place(order)(named(group))):
        if named(group) in rows:
            raise UserError(f"there are two kinds of runs for {named(group)}: name the runs that the table is of")
        rows[named(group)] = group
    return rows


def _columns(methods: Iterable[str], labels: Iterable[str]) -> dict[str, str]:
    """The labels that stand for these methods, each with the method's name; a method that was not run stands too."""
    known = sorted(set(labels))
    columns = {}
    for method in methods:
        found = [label for label in known if published.printed_as(BENCHMARK, label) == method]
        columns.update({label: method for label in found or [method]})
    return columns


def _printed(group: Group, source: str) -> dict[str, float]:
    card = group.card
    found = numbers(card, card["data"]["name"], _shifts(group), _network(group))
    return {number.method: number.value for number in found if number.source == source}


def _printed_line(name: str, columns: Mapping[str, str], theirs: Mapping[str, float], source: str) -> list[Line]:
    entries = tuple(Entry(theirs[method]) if method in theirs else None for method in columns.values())
    return [Line(name, entries, source)] if any(entries) else []


def _caveats(members: Iterable[Group], beside: Iterable[Mapping[str, object]]) -> list[str]:
    if not any(beside):
        return []
    return [PRINTED, *(CAVEATS[name] for name in dict.fromkeys(map(_shifts, members)) if name in CAVEATS)]


LAYOUTS: dict[str, Layout] = {
    f"{BENCHMARK}/table-2": _over_networks,
    **{f"{BENCHMARK}/table-{number}": partial(_per_network, number) for number in SEQUENCES},
    f"{BENCHMARK}/table-14": _lengths,
    f"{BENCHMARK}/table-15": _initialisation,
}
