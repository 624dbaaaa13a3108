"""Charts of a page with their data, the chart library, and the templates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from driftline.report import format
from driftline.report.analysis.curves import DIGITS, Series
from driftline.report.figures.palette import Style, apply_styles, make_interactive, unit_specs
from driftline.report.page.alt_text import describe
from driftline.types import JsonObject

if TYPE_CHECKING:
    from jinja2 import Template

UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
SCALE = 10**DIGITS
FORMATS = ("value", "interval", "amount", "false_alarm", "points", "images")


@dataclass(frozen=True)
class PlacedChart:
    """A chart of the page, by the id of its element."""

    id: str
    title: str


class PageCharts:
    """The charts of a page and their data; a method has the same style in all charts."""

    def __init__(self) -> None:
        self.styles: Mapping[str, Style] = {}
        self.series: dict[str, Series] = {}
        self.specs: dict[str, JsonObject] = {}
        self.explorer: JsonObject = {}

    def add_data(self, rows: Series) -> str:
        """Add data; return the name that charts use."""
        name = f"data{len(self.series)}"
        self.series[name] = rows
        return name

    def add_chart(self, title: str, spec: JsonObject) -> PlacedChart:
        """Add a chart, with its alt text, styles and interaction."""
        name = f"chart{len(self.specs)}"
        numbers = [describe(self.series[data]) for data in data_names(spec)]
        spec["description"] = " ".join([f"{spec.get('description', title).rstrip('.')}.", *numbers]).strip()
        apply_styles(spec, self.styles)
        make_interactive(spec)
        self.specs[name] = spec
        return PlacedChart(name, title)

    def content(self) -> str:
        """Return all charts and data as JSON for a script element."""
        data = {name: compress_columns(series) for name, series in self.series.items()}
        configs: dict[str, int] = {}  # shared by many charts
        charts = {
            name: {**spec, "config": configs.setdefault(json.dumps(spec["config"]), len(configs))}
            for name, spec in self.specs.items()
        }
        styles = [json.loads(config) for config in configs]
        return safe_json({"data": data, "charts": charts, "styles": styles, "explorer": self.explorer})


def data_names(spec: JsonObject) -> list[str]:
    """Return the names of a chart's data, each once."""
    parts = [spec.get("data"), *(unit.get("data") for unit in unit_specs(spec))]
    return list(dict.fromkeys(part["name"] for part in parts if part and "name" in part))


def compress_columns(series: Series) -> JsonObject:
    """Return rows by column: constants once, each text once, and shares as integers.

    >>> compress_columns(Series(["method", "time", "seeds"], [["erm", "a", 3], ["erm", "b", 3]]))["columns"]
    {'method': {'all': 'erm'}, 'time': {'words': ['a', 'b'], 'at': [0, 1]}, 'seeds': {'all': 3}}
    """
    columns = dict(zip(series.columns, map(list, zip(*series.rows, strict=True)), strict=False))
    return {"rows": len(series.rows), "columns": {name: _compress(column) for name, column in columns.items()}}


def _compress(column: list[Any]) -> object:
    if all(value == column[0] for value in column):
        return {"all": column[0]}
    if all(value is None or isinstance(value, float) for value in column):
        return _integers(column)
    if not all(isinstance(value, str) for value in column):
        return column
    words: dict[str, int] = {}
    at = [words.setdefault(value, len(words)) for value in column]
    return {"words": list(words), "at": at}


def _integers(column: list[float | None]) -> object:
    """Return numbers as multiples of their last digit, if division restores them exactly."""
    at = [None if value is None else round(value * SCALE) for value in column]
    restored = [None if whole is None else whole / SCALE for whole in at]
    return {"of": SCALE, "at": at} if restored == column else column


def safe_json(content: object) -> str:
    """Return JSON that cannot end the script element it is in.

    >>> safe_json({"method": "</script>"})
    '{"method":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def template(
    name: str = "page.html.j2",
    package: str = "driftline.report.page",
    filters: Mapping[str, Callable[[str], str]] | None = None,
    base: str = "driftline.report.page",
) -> Template:
    """Return a template of a package; it may extend those of a base package and of the report."""
    import jinja2

    packages = dict.fromkeys((package, base, "driftline.report.page"))
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters or {})
    environment.globals.update({f"format_{name}": getattr(format, f"format_{name}") for name in FORMATS}, zip=zip)
    return environment.get_template(name)


@cache
def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that fetches nothing."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    known = version in vl_convert.get_vegalite_versions()
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", version if known else None)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
