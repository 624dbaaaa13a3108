"""What a page carries with it: charts and their data, the library that draws them, and the templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from driftline.report.analysis.curves import DIGITS, Series
from driftline.report.figures.palette import Look, link, paint, units
from driftline.report.format import (
    format_amount,
    format_false_alarm,
    format_images,
    format_interval,
    format_points,
    format_value,
)
from driftline.report.page.alt_text import spoken

UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
FINE = 10**DIGITS


class Figures:
    """The charts of a page and the data they name; all show a method in the same look."""

    def __init__(self, looks: Mapping[str, Look] | None = None) -> None:
        self.looks = looks or {}
        self.series: dict[str, Series] = {}
        self.specs: dict[str, dict[str, Any]] = {}

    def keep(self, rows: Series) -> str:
        """Remember data; returns the name that charts use."""
        name = f"data{len(self.series)}"
        self.series[name] = rows
        return name

    def add(self, title: str, spec: dict[str, Any]) -> dict[str, str]:
        """Remember a chart; returns what the template needs to place it."""
        name = f"chart{len(self.specs)}"
        said = [spoken(self.series[data]) for data in named(spec)]
        spec["description"] = " ".join([f"{spec.get('description', title)}.", *said]).strip()
        paint(spec, self.looks)
        link(spec)
        self.specs[name] = spec
        return {"id": name, "title": title}

    def content(self) -> str:
        """All of it, to stand in a script element."""
        data = {name: packed(series) for name, series in self.series.items()}
        styles: dict[str, int] = {}  # few, and each is shared by many charts
        charts = {
            name: {**spec, "config": styles.setdefault(json.dumps(spec["config"]), len(styles))}
            for name, spec in self.specs.items()
        }
        return safe_json({"data": data, "charts": charts, "styles": [json.loads(style) for style in styles]})


def named(spec: dict[str, Any]) -> list[str]:
    """The data that a chart names, each once."""
    parts = [spec.get("data"), *(unit.get("data") for unit in units(spec))]
    return list(dict.fromkeys(part["name"] for part in parts if part))


def packed(series: Series) -> dict[str, Any]:
    """Rows by column: what is the same in all rows stands once, and so does each word; shares are whole numbers.

    >>> packed(Series(["method", "time", "seeds"], [["erm", "a", 3], ["erm", "b", 3]]))["columns"]
    {'method': {'all': 'erm'}, 'time': {'words': ['a', 'b'], 'at': [0, 1]}, 'seeds': {'all': 3}}
    """
    columns = dict(zip(series.columns, map(list, zip(*series.rows, strict=True)), strict=False))
    return {"rows": len(series.rows), "columns": {name: _packed(column) for name, column in columns.items()}}


def _packed(column: list[Any]) -> Any:
    if all(value == column[0] for value in column):
        return {"all": column[0]}
    if all(value is None or isinstance(value, float) for value in column):
        return _whole(column)
    if not all(isinstance(value, str) for value in column):
        return column
    words: dict[str, int] = {}
    at = [words.setdefault(value, len(words)) for value in column]
    return {"words": list(words), "at": at}


def _whole(column: list[float | None]) -> Any:
    """Numbers with few digits as multiples of the last of them, if dividing gives exactly the same numbers back."""
    at = [None if value is None else round(value * FINE) for value in column]
    back = [None if whole is None else whole / FINE for whole in at]
    return {"of": FINE, "at": at} if back == column else column


def safe_json(content: Any) -> str:
    """JSON that cannot end the script element it stands in, whatever names it holds.

    >>> safe_json({"method": "</script>"})
    '{"method":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def template(name: str = "page.html.j2", package: str = "driftline.report.page", folder: str = "templates") -> Any:
    """A template of a package; it may extend the report's."""
    import jinja2

    places = dict.fromkeys(((package, folder), ("driftline.report.page", "templates")))
    rules = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package, folder) for package, folder in places]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rules.globals.update(format_value=format_value, format_interval=format_interval, format_amount=format_amount)
    rules.globals.update(
        format_false_alarm=format_false_alarm, format_points=format_points, format_images=format_images, zip=zip
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
