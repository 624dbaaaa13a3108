"""A section of the page: what one group of comparable runs came to."""

from __future__ import annotations

from typing import Any

from driftline.metrics import title
from driftline.report import charts, composition, differences, pareto, series
from driftline.report.against_frozen import standings
from driftline.report.cards import cards, data_notes, departures
from driftline.report.choosing import HEADER, contests
from driftline.report.embedding import Figures
from driftline.report.groups import Group
from driftline.report.growth import growth
from driftline.report.notes import FINAL, caption, formulas, notes
from driftline.report.palette import shared
from driftline.report.results import ResultTable
from driftline.report.series import Series, plain
from driftline.report.summaries import answer
from driftline.report.tracks import page_track, room

CHOICES = ("train", "objective", "layers", "lr", "weight_decay", "dropout", "strength", "epoch", "score")
COURSE = ["method", "time", "value", "low", "high", "n", "seeds"]
PAIR = ["method", "other", "value", "low", "high", "n", "seeds"]


def section(table: ResultTable, place: int, figures: Figures) -> dict[str, Any]:
    """All that the template shows of a group; `place` is its place on the page."""
    group, card = table.group, table.group.card
    everywhere, by_method = cards(group)
    return {
        "anchor": f"group-{place}",
        "benchmark": card["run"]["benchmark"],
        "title": group.title,
        "question": card["question"],
        "paper": card["paper"],
        "answer": answer(table),
        "table": table,
        "caption": caption(table),
        "notes": notes(table),
        "formulas": formulas(table),
        "counts": counts(table),
        "data_notes": data_notes(group),
        "departures": departures(group),
        "looks": figures.looks,
        "alike": shared(figures.looks),
        "pareto": _pareto(table, figures),
        "lines": _lines(table, figures),
        "dots": _dots(table, figures),
        "standings": standings(group),
        "growth": _growth(group, figures),
        "choices": _choices(group),
        "contests": [one.cells for one in contests(group)],
        "contest_header": HEADER,
        "maps": _maps(group, figures),
        "samples": [*_samples(group, figures), *_composition(group, figures)],
        "differences": _differences(group, figures),
        "pictures": _pictures(group, figures),
        "everywhere": everywhere,
        "cards": by_method,
    }


def counts(table: ResultTable) -> list[int | None]:
    """For each column the n of its cells, or none where they differ and each has to say its own."""
    found = []
    for k in range(len(table.columns)):
        seen = {cell.n for row in table.rows if (cell := row.cells[k])}
        found.append(seen.pop() if len(seen) == 1 else None)
    return found


def _pareto(table: ResultTable, figures: Figures) -> list[dict[str, str]]:
    """What accuracy costs, where compute was counted."""
    column = pareto.headline(table)
    found = pareto.prices(table, column) if column else []
    if not found or column is None:
        return []
    spec = pareto.chart(figures.keep(pareto.rows(found)), table.group.methods, found, column)
    return [figures.add(f"{column.name} against compute", spec)]


def _lines(table: ResultTable, figures: Figures) -> list[dict[str, str]]:
    group, headline = table.group, tuple((column.metric, column.stat) for column in table.columns)
    placed = []
    for metric, rows in series.over_time(group, headline).items():
        times, span = series.times(group), charts.span(rows)
        spec = charts.lines(figures.keep(rows), times, group.methods, title(metric), span, series.unit(group))
        formula = next(column.formula for column in table.columns if column.metric == metric)
        placed.append(figures.add(formula, spec))
    return placed


def _growth(group: Group, figures: Figures) -> list[dict[str, str]]:
    """What methods showed of their inside over time, a chart for each number."""
    frame = growth(group)
    if frame.empty:
        return []
    placed = []
    for gauge, part in frame.groupby("gauge", sort=False):
        rows = Series(COURSE, [[plain(value) for value in row] for row in part[COURSE].itertuples(index=False)])
        placed.append(figures.add(str(gauge), page_track(figures.keep(rows), group.methods, str(gauge), room(part))))
    return placed


def _dots(table: ResultTable, figures: Figures) -> list[dict[str, str]]:
    """Where a benchmark examines only once: each method's number, and lines at those that all are compared with."""
    placed = []
    for column in table.columns:
        rows = series.at_the_end(table, column)
        if column.metric == FINAL and rows.rows:
            order, name = rows.values("method"), column.name
            references = tuple(method for method, role in table.group.roles.items() if role != "method")
            spec = charts.dots(figures.keep(rows), table.group.methods, order, name, references)
            placed.append(figures.add(column.formula, spec))
    return placed


def _choices(group: Group) -> list[tuple[str, int, int, dict[str, str]]]:
    """What was chosen on validation data, as text; a card leaves out what is 0."""
    return [
        (method, seed, trials, {name: shown_choice(trial.get(name, 0)) for name in CHOICES})
        for method, seed, trials, trial in series.choices(group)
    ]


def shown_choice(value: Any) -> str:
    """A setting as the table of choices has it.

    >>> shown_choice(0.0001), shown_choice(0.58333), shown_choice("fc")
    ('0.0001', '0.5833', 'fc')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _maps(group: Group, figures: Figures) -> list[tuple[str, list[dict[str, str]]]]:
    """For each method its heat maps: A, and g where the benchmark has a delta."""
    times, delta = series.times(group), group.card["run"]["options"].get("delta")
    accuracy, transfer = series.cells(group, "accuracy"), series.cells(group, "ttr")
    if not accuracy:
        return []
    domain, lowest = _extent(accuracy), _extent(transfer)[0]
    first = charts.accuracy_map("", times, domain)  # the maps of methods differ in nothing but their data
    second = charts.transfer_map("", times, lowest, delta) if delta is not None else {}
    placed = []
    for method in group.methods:
        maps = []
        if method in accuracy:
            spec = {**first, "data": {"name": figures.keep(accuracy[method])}}
            maps.append(figures.add("accuracy A(t, τ)", spec))
        if method in transfer and second:
            spec = {**second, "data": {"name": figures.keep(transfer[method])}}
            maps.append(figures.add(f"transfer ratio g(t, τ), white at δ = {delta}", spec))
        if maps:
            placed.append((method, maps))
    return placed


def _samples(group: Group, figures: Figures) -> list[dict[str, str]]:
    rows, unit = series.sample_counts(group), "step" if "steps" in group.card["protocol"] else "period"
    spec = charts.bars(figures.keep(rows), series.times(group), unit) if rows.rows else None
    return [figures.add(f"samples per {unit}", spec)] if spec else []


def _composition(group: Group, figures: Figures) -> list[dict[str, str]]:
    """Which clusters a stream's queries, and the errors of the model that it starts with, come from."""
    found = composition.of_group(group)
    if found is None:
        return []
    return [
        figures.add(
            f"{name} in {found.title}, by cluster", charts.stacked(figures.keep(rows), found.times, found.clusters)
        )
        for name, rows in found
    ]


def _differences(group: Group, figures: Figures) -> list[dict[str, str]]:
    """How often each two methods answer differently, where a stream of queries shows it."""
    if "composition" not in group.card["protocol"]:
        return []
    found = list(differences.rows(group, differences.spans_of(None, len(series.times(group)))))
    values, placed = [row["value"] for row in found], []
    for span in dict.fromkeys(row["span"] for row in found):
        rows = Series(PAIR, [[plain(row[name]) for name in PAIR] for row in found if row["span"] == span])
        placed.append(figures.add(span, charts.pairs(figures.keep(rows), group.methods, values)))
    return placed


def _pictures(group: Group, figures: Figures) -> list[dict[str, str]]:
    """How the classes lie in the features of each method's network, over time."""
    placed = []
    for method in group.methods:
        rows, how = series.projection(group, method)
        if rows.rows:
            stretches, classes = (list(dict.fromkeys(rows.values(column))) for column in ("stretch", "class"))
            spec = charts.scatter(figures.keep(rows), stretches, sorted(classes))
            seed = group.runs_of(method)[0].seed
            placed.append(figures.add(f"{method}: {len(rows.rows)} held-out samples, {how}, seed {seed}", spec))
    return placed


def _extent(by_method: dict[str, Series]) -> tuple[float, float]:
    values = [value for rows in by_method.values() for value in rows.values("value")] or [0.0, 1.0]
    low, high = min(values), max(values)
    return (low, high) if low < high else (max(0.0, low - 0.05), low + 0.05)
