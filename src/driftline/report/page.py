"""The report: one HTML page that needs neither network nor server, and can be mailed, archived and printed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from driftline.atomic import write_bytes
from driftline.record import Record
from driftline.report import charts, composition, differences, series
from driftline.report.against_frozen import standings
from driftline.report.groups import Group, groups
from driftline.report.growth import growth
from driftline.report.marks import BASELINE, ORACLE
from driftline.report.notes import FINAL, answer, caption, formulas, images, notes, points
from driftline.report.results import ResultTable, shown, shown_gmac, shown_interval, tabulate
from driftline.report.series import Series, plain
from driftline.report.speeds import over_speeds
from driftline.report.tracks import page_track, room
from driftline.version import __version__

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
CHOICES = ("train", "objective", "layers", "lr", "weight_decay", "dropout", "strength", "epoch", "score")
COURSE = ["method", "time", "value", "low", "high", "seeds"]
PAIR = ["method", "other", "value", "low", "high", "seeds"]


class Figures:
    """The charts of a page and the data they name."""

    def __init__(self) -> None:
        self.data: dict[str, dict[str, Any]] = {}
        self.specs: dict[str, dict[str, Any]] = {}

    def keep(self, rows: Series) -> str:
        """Remember data, each word once; returns the name that charts use."""
        name = f"data{len(self.data)}"
        words: dict[str, int] = {}
        packed = [[[words.setdefault(v, len(words))] if isinstance(v, str) else v for v in row] for row in rows.rows]
        self.data[name] = {"columns": rows.columns, "words": list(words), "rows": packed}
        return name

    def add(self, title: str, spec: dict[str, Any]) -> dict[str, str]:
        """Remember a chart; returns what the template needs to place it."""
        name = f"chart{len(self.specs)}"
        self.specs[name] = spec
        return {"id": name, "title": title}


def write_report(record: Record, output: Path) -> None:
    """Write the page of all groups in the record; an older page is replaced in one step."""
    write_bytes(output, page(record).encode())


def page(record: Record) -> str:
    """The page as text; streams that differ in their speed alone share a section."""
    figures = Figures()
    sections = [_section(tabulate(group), figures) for group in over_speeds(groups(record))]
    text: str = template().render(
        sections=sections,
        runs=len(record),
        version=__version__,
        figures=safe_json({"data": figures.data, "charts": figures.specs}),
        bundle=bundle(),
    )
    return text


def safe_json(content: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever names it holds.

    >>> safe_json({"method": "</script>"})
    '{"method":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return "".join(UNSAFE.get(character, character) for character in text)


def _section(table: ResultTable, figures: Figures) -> dict[str, Any]:
    group, card = table.group, table.group.card
    return {
        "title": group.title,
        "question": card["question"],
        "paper": card["paper"],
        "answer": answer(table),
        "table": table,
        "caption": caption(table),
        "notes": notes(table),
        "formulas": formulas(table),
        "data_notes": list(dict.fromkeys(note for run in group.runs for note in run.card["data"]["notes"])),
        "departures": list(dict.fromkeys(note for run in group.runs for note in run.card["departures"])),
        "methods": [(method, charts.colour(k), charts.dash(k)) for k, method in enumerate(group.methods)],
        "lines": _lines(table, figures),
        "dots": _dots(table, figures),
        "standings": standings(group),
        "growth": _growth(group, figures),
        "choices": _choices(group),
        "maps": _maps(group, figures),
        "samples": [*_samples(group, figures), *_composition(group, figures)],
        "differences": _differences(group, figures),
        "pictures": _pictures(group, figures),
        "cards": [(group.labels[run.key], run.seed, run.key, _yaml(run.card)) for run in group.runs],
    }


def _lines(table: ResultTable, figures: Figures) -> list[dict[str, str]]:
    group, headline = table.group, tuple((column.metric, column.stat) for column in table.columns)
    placed = []
    for metric, rows in series.over_time(group, headline).items():
        times, span = series.times(group), charts.span(rows)
        spec = charts.lines(figures.keep(rows), times, group.methods, metric.upper(), span, series.unit(group))
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
            spec = charts.dots(figures.keep(rows), table.group.methods, order, name, (ORACLE, BASELINE))
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
    domain = _extent(accuracy)
    lowest = _extent(transfer)[0]
    placed = []
    for method in group.methods:
        maps = []
        if method in accuracy:
            spec = charts.accuracy_map(figures.keep(accuracy[method]), times, domain)
            maps.append(figures.add("accuracy A(t, τ)", spec))
        if method in transfer and delta is not None:
            spec = charts.transfer_map(figures.keep(transfer[method]), times, lowest, delta)
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


def _yaml(card: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(card, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


def template(name: str = "page.html.j2", package: str = "driftline.report") -> Any:
    """A template of a package; it may extend the report's."""
    import jinja2

    folders = dict.fromkeys((package, "driftline.report"))
    rules = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(folder, ".") for folder in folders]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rules.globals.update(
        shown=shown, shown_interval=shown_interval, shown_gmac=shown_gmac, points=points, images=images, zip=zip
    )
    return rules.get_template(name)


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without addresses to fetch from."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    known = version in vl_convert.get_vegalite_versions()
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version if known else None)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
