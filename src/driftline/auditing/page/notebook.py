"""A result in a notebook: the verdict beside the one chart, as HTML with a drawn picture and no script."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from driftline.auditing.page.over_time import log_over_time, model_over_time
from driftline.auditing.page.titles import over_time_title, source_line
from driftline.auditing.page.view import View
from driftline.auditing.wording import typeset
from driftline.report.page.embed import PageCharts, template
from driftline.types import JsonObject

if TYPE_CHECKING:
    from driftline.auditing.result import AuditResult

WIDTH = 640


def notebook_html(result: AuditResult) -> str:
    """Return verdict and chart; nothing is fetched and no script runs, so it also shows in a stored notebook."""
    view = View(result)
    title = over_time_title(view)
    text: str = template("notebook.html.j2", "driftline.auditing", filters={"typeset": typeset}).render(
        summary=result.summary,
        style=_scoped_style(),
        title=title,
        view=view,
        picture=_svg(over_time_spec(view)),
        source=typeset(source_line(view)),
    )
    return text


def over_time_spec(view: View) -> JsonObject:
    """Return the chart over time as a Vega-Lite spec of fixed width, with its data."""
    charts, log = PageCharts(), view.result.policies is None
    placed = (log_over_time if log else model_over_time)(view, charts, over_time_title(view))
    datasets = {name: list(series.records()) for name, series in charts.series.items()}
    text = json.dumps(charts.specs[placed.id] | {"datasets": datasets})
    spec: JsonObject = json.loads(text.replace('"width": "container"', f'"width": {WIDTH}'))
    return spec


def _svg(spec: JsonObject) -> str:
    import vl_convert

    picture: str = vl_convert.vegalite_to_svg(spec)
    return picture


@cache
def _scoped_style() -> str:
    """Return the style sheets of the page for the element `.driftline` alone."""
    look = files("driftline.report.page").joinpath("templates/look.css").read_text(encoding="utf-8")
    audit = files("driftline.auditing").joinpath("templates/audit.css").read_text(encoding="utf-8")
    light, _, rest = look.partition("@media (prefers-color-scheme: dark) {")
    dark, _, rest = rest.partition("\n}\n")
    variables = f"{light.replace(':root', '.driftline')}@media (prefers-color-scheme: dark) {{{dark}\n}}\n"
    inner = f".driftline {{ {rest}\n{audit} }}".replace("body {", "& {").replace("body > header", "header")
    return variables.replace(":root", ".driftline") + inner
