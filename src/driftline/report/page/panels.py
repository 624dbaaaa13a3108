"""Panels of a section: each shows one aspect of a group of runs, or nothing if the runs do not have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driftline.benchmarks.answer import MINUS
from driftline.benchmarks.summary import Number
from driftline.metrics import title
from driftline.report.analysis import curves
from driftline.report.analysis.composition import of_group
from driftline.report.analysis.curves import Series, json_value
from driftline.report.analysis.disagreement import disagreement, parse_step_ranges
from driftline.report.analysis.events import marks_note
from driftline.report.analysis.frozen_baseline import compare_with_frozen
from driftline.report.analysis.groups import Group
from driftline.report.analysis.internals import diagnostic_curves
from driftline.report.analysis.projection import project_features
from driftline.report.analysis.result_table import ResultTable
from driftline.report.analysis.selected_settings import HEADER, from_search
from driftline.report.figures.axes import value_range
from driftline.report.format import count_of, format_images, format_points
from driftline.report.page import charts
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.multiples import LONG, multiples
from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow, text_columns, text_row

CHOICES = ("train", "objective", "layers", "lr", "weight_decay", "dropout", "strength", "epoch", "epochs", "score")
MAPS = ("accuracy", "transfer")  # figures
HOVER = "Hover over a mark for its value, interval, n and seeds."
CURVE = ["method", "time", "value", "low", "high", "n", "seeds"]
PAIR = ["method", "other", "value", "low", "high", "n", "seeds"]


@dataclass(frozen=True)
class Panel:
    """A heading with charts, a table and a note."""

    title: str
    charts: tuple[PlacedChart, ...] = ()
    rows: tuple[tuple[str, tuple[PlacedChart, ...]], ...] = ()
    """Further charts under headings."""
    small: bool = False
    """Whether the charts of a row are small multiples."""
    table: Table | None = None
    sortable: bool = False
    note: str = ""
    hint: str = ""
    """What is folded, in a few words."""
    figures: tuple[str, ...] = ()
    """The registered figures that it shows."""


def over_time(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show the headline metrics over time, a chart per method."""
    group, headline = results.group, tuple((column.metric, column.stat) for column in results.columns)
    rows = []
    colors = {method: page.styles[method].color for method in group.methods}
    for metric, series in curves.headline_curves(group, headline).items():
        placed = multiples(series, metric, group, colors, page)
        rows.append((title(metric), placed))
    behind = f" The thin orange line is {group.baseline}." if group.baseline else ""
    zoom = " Drag to move, Shift and the wheel to zoom." if len(curves.time_names(group)) > LONG else ""
    note = f"Means over seeds, bands are 95% intervals.{behind}{marks_note(group, group.methods)}{zoom} {HOVER}"
    hint = f"{count_of(len(rows), 'metric')}, a chart per method"
    return (
        Panel("All curves", rows=tuple(rows), note=note, hint=hint, small=True, figures=("curves",)) if rows else None
    )


def data(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show the amount of data over time."""
    composition = _composition(results.group, page)
    placed = (*_samples(results.group, page), *composition)
    figures = ("composition",) if composition else ()
    return Panel("Data", placed, hint="samples over time", figures=figures) if placed else None


def _samples(group: Group, page: PageCharts) -> list[PlacedChart]:
    rows, unit = curves.sample_counts(group), "step" if "steps" in group.card.protocol else "period"
    if not rows.rows:
        return []
    spec = charts.bars(page.add_data(rows), curves.time_names(group), unit)
    return [page.add_chart(f"samples per {unit}", spec)]


def _composition(group: Group, page: PageCharts) -> list[PlacedChart]:
    found = of_group(group)
    return [
        page.add_chart(
            f"{name} in {found.title}, by cluster", charts.stacked(page.add_data(rows), found.times, found.clusters)
        )
        for name, rows in found or ()
        if found
    ]


def against_frozen(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show the comparison of each method with the frozen model."""
    found = compare_with_frozen(results.group)
    if not found:
        return None
    columns = (
        TableColumn("gain", "mean accuracy minus frozen"),
        TableColumn("collapsed", "seeds with a negative gain"),
        TableColumn("worse to the end", "seeds; since, median"),
        TableColumn("largest drop", "in a window"),
        TableColumn("adapted", "half of its largest gain after, median"),
    )
    rows = []
    for one in found:
        since = (format_images(one.worse_since),) if one.worse_to_the_end else ()
        cells = (
            TableCell(_points(one.gain)),
            TableCell(f"{one.collapsed} of {one.seeds}"),
            TableCell(str(one.worse_to_the_end), lines=since),
            TableCell(_points(one.max_drop)),
            TableCell(format_images(one.adapted_after)),
        )
        rows.append(TableRow(one.method, cells))
    note = (
        "Paired by seed on the same images, means over seeds with 95% t-intervals, which need two seeds. A window has "
        f"{min(one.n for one in found)} images or more; the largest drop of many windows is partly chance."
    )
    title, hint = "Comparison with the frozen model", "gain, collapse, largest drop"
    return Panel(
        title,
        table=Table(title, "method", columns, tuple(rows)),
        sortable=True,
        note=note,
        hint=hint,
    )


def _points(number: Number) -> str:
    return format_points(number).replace("-", MINUS)


def internals(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show the diagnostics of methods over time."""
    frame = diagnostic_curves(results.group)
    if frame.empty:
        return None
    placed = []
    for gauge, part in frame.groupby("gauge", sort=False):
        data = page.add_data(Series.from_frame(part, CURVE))
        spec = charts.lines_over_images(data, results.group.methods, str(gauge), value_range(part))
        placed.append(page.add_chart(str(gauge), spec))
    note = "Means over seeds with 95% t-intervals, for methods that report diagnostics."
    return Panel(
        "Diagnostics", tuple(placed), note=note, hint="what methods report about themselves", figures=("internals",)
    )


def different_answers(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show how often methods answer the queries of a stream differently."""
    group = results.group
    if "composition" not in group.card.protocol:
        return None
    found = list(disagreement(group, parse_step_ranges(None, len(curves.time_names(group)))))
    values, placed = [row["value"] for row in found], []
    for steps in dict.fromkeys(row["steps"] for row in found):
        rows = [[json_value(row[name]) for name in PAIR] for row in found if row["steps"] == steps]
        spec = charts.pairs(page.add_data(Series(PAIR, rows)), group.methods, values)
        placed.append(page.add_chart(steps, spec))
    note = (
        "Share of queries that two methods answer differently before they learn from them, in a range of steps; means "
        "over seeds."
    )
    hint, figures = "share of queries answered differently", ("disagreement",)
    return Panel("Disagreement of methods", tuple(placed), note=note, hint=hint, figures=figures) if placed else None


def searched_settings(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show the settings that a hyper-parameter search selected."""
    rows = tuple(text_row(*one.cells) for one in from_search(results.group))
    title = "Selected settings"
    table = Table(title, HEADER[0], text_columns(*HEADER[1:]), rows)
    return Panel(title, table=table, hint="of each method's search") if rows else None


def validation_choices(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show the fits that validation data selected; a card omits values that are 0."""
    rows = [
        text_row(method, str(seed), str(fits), *(format_choice(fit.get(name, 0)) for name in CHOICES))
        for method, seed, fits, fit in curves.validation_choices(results.group)
    ]
    if not rows:
        return None
    details = {"fits": "in all phases", "train": "steps", "epoch": "kept", "epochs": "trained", "score": "accuracy"}
    names = {"train": "trained on", "weight_decay": "weight decay", "score": "validation"}
    columns = tuple(TableColumn(names.get(one, one), details.get(one, "")) for one in ("seed", "fits", *CHOICES))
    title = "Selection on validation data"
    summary = f"{len(rows)} phases with their selected fits; all fits are in trials.parquet of each run"
    return Panel(title, table=Table(title, "method", columns, tuple(rows)), hint=summary)


def format_choice(value: object) -> str:
    """Return a setting as text.

    >>> format_choice(0.0001), format_choice(0.58333), format_choice("fc")
    ('0.0001', '0.5833', 'fc')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def heat_maps(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show A(t, tau) of each method, and g(t, tau) where the benchmark has a delta."""
    group = results.group
    times, delta = curves.time_names(group), group.options.get("delta")
    accuracy, transfer = curves.cells_by_method(group, "accuracy"), curves.cells_by_method(group, "ttr")
    if not accuracy:
        return None
    first = charts.accuracy_map("", times, _range(accuracy))  # the maps of methods differ only in their data
    second = charts.transfer_map("", times, _range(transfer)[0], delta) if delta is not None else {}
    placed = []
    for method in group.methods:
        maps = []
        if method in accuracy:
            spec = {**first, "data": {"name": page.add_data(accuracy[method])}}
            maps.append(page.add_chart("accuracy A(t, τ)", spec))
        if method in transfer and second:
            spec = {**second, "data": {"name": page.add_data(transfer[method])}}
            maps.append(page.add_chart(f"transfer ratio g(t, τ), white at δ = {delta}", spec))
        placed += [(method, tuple(maps))] if maps else []
    note = f"Means over seeds; gray cells were not evaluated. {HOVER}"
    hint = "heat maps of A(t, τ) and g(t, τ)"
    return Panel("Trained at one time, tested at another", rows=tuple(placed), note=note, hint=hint, figures=MAPS)


def projections(results: ResultTable, page: PageCharts) -> Panel | None:
    """Show the features of each method's network in two dimensions."""
    group, placed = results.group, []
    for method in group.methods:
        rows, projection = project_features(group, method)
        if rows.rows:
            stretches, classes = (list(dict.fromkeys(rows.values(column))) for column in ("stretch", "class"))
            spec = charts.projection(page.add_data(rows), stretches, sorted(classes))
            seed = group.runs_of(method)[0].seed
            title = f"{method}: {len(rows.rows)} held-out samples, {projection}, seed {seed}"
            placed.append(page.add_chart(title, spec))
    note = (
        "Input of the last layer of each final network, in two dimensions. Where classes overlap, the data are hard to "
        "separate."
    )
    hint = "of held-out samples, in two dimensions"
    return Panel("Features", tuple(placed), note=note, hint=hint, figures=("projection",)) if placed else None


def _range(by_method: dict[str, Series]) -> tuple[float, float]:
    values = [value for rows in by_method.values() for value in rows.values("value")] or [0.0, 1.0]
    low, high = min(values), max(values)
    return (low, high) if low < high else (max(0.0, low - 0.05), low + 0.05)


PANELS: tuple[Callable[[ResultTable, PageCharts], Panel | None], ...] = (
    over_time,
    data,
    against_frozen,
    internals,
    different_answers,
    searched_settings,
    validation_choices,
    heat_maps,
    projections,
)


def panels(results: ResultTable, page: PageCharts) -> list[Panel]:
    """Return the panels of a group of runs, in the order of the page."""
    return [panel for show in PANELS if (panel := show(results, page))]
