"""The audit as one self-contained page: the answers first, then figures and tables, then the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftline.auditing.words import interval, plain, points
from driftline.report.analysis.curves import Series
from driftline.report.figures.axes import share_range
from driftline.report.page import charts
from driftline.report.page.embed import PageCharts, PlacedChart, bundle, template
from driftline.version import __version__

if TYPE_CHECKING:
    from driftline.auditing.conduct import Audit

COLUMNS = ["method", "time", "value", "low", "high", "n", "seeds", "interval"]
SHOWN = 30  # features in the table


def page(audit: Audit) -> str:
    """The page as text."""
    numbers, figures = audit.numbers, PageCharts()
    placed = [*_course(numbers, figures), *_replay(numbers, figures), *_online(numbers, figures)]
    maps = _maps(numbers, figures)
    text: str = template("audit.html.j2", "driftline.auditing", ".").render(
        answers=audit.answers,
        data=numbers["data"],
        lines=placed,
        maps=maps,
        policies=numbers.get("policies", []),
        recommendation=numbers.get("recommendation", {}),
        detectors=numbers.get("detectors", []),
        features=numbers.get("shift", {}).get("features", [])[:SHOWN],
        where={row["feature"]: row for row in numbers.get("shift", {}).get("where", [])},
        parts=numbers.get("shift", {}).get("periods", {}),
        card=_card(numbers),
        points=points,
        plain=plain,
        interval=interval,
        version=__version__,
        figures=figures.content(),
        bundle=bundle(),
    )
    return text


def _course(numbers: dict[str, Any], figures: PageCharts) -> list[PlacedChart]:
    """The first model and the new ones over time, or the log's own course."""
    times, decay = numbers["data"]["periods"], numbers["decay"]
    if "matrix" in decay:
        found = decay["matrix"]
        rows = [_cell("first model", t, found, 0, k) for k, t in enumerate(times)]
        rows += [_cell("new model (oracle)", t, found, k, k) for k, t in enumerate(times)]
        names = ["first model", "new model (oracle)"]
    else:
        rows = [["logged", t, m["value"], m["low"], m["high"], m["n"], 1, "examples"]
                for t, m in zip(times, decay["course"], strict=True)]  # fmt: skip
        names = ["logged"]
    series = Series(COLUMNS, _rounded(rows))
    spec = charts.lines(figures.add_data(series), times, names, "quality", share_range(series))
    return [figures.add_chart("quality over time", _legend(spec))]


def _cell(name: str, time: str, found: dict[str, Any], t: int, tau: int) -> list[Any]:
    keys = ("accuracy", "low", "high", "n")
    return [name, time, *(found[key][t][tau] for key in keys), 1, "examples"]


def _replay(numbers: dict[str, Any], figures: PageCharts) -> list[PlacedChart]:
    rows = numbers.get("policies", [])
    if not rows:
        return []
    used = numbers["data"]["periods"][-len(rows[0]["by_period"]) :]
    keys = ("by_period", "by_period_low", "by_period_high", "by_period_n")
    cells = [[row["policy"], time, *found, 1, "examples"] for row in rows
             for time, *found in zip(used, *(row[key] for key in keys), strict=True)]  # fmt: skip
    series = Series(COLUMNS, _rounded(cells))
    names = [row["policy"] for row in rows]
    spec = charts.lines(figures.add_data(series), used, names, "quality", share_range(series))
    del spec["layer"][0]  # the bands of so many policies would hide the lines; points tell their intervals
    return [figures.add_chart("replay: quality of each policy, period by period", _legend(spec))]


def _online(numbers: dict[str, Any], figures: PageCharts) -> list[PlacedChart]:
    """The estimates that the policy on the online TAS went by, at the time when they became known."""
    row = next((row for row in numbers.get("policies", []) if "online_tas" in row), None)
    if row is None:
        return []
    found = {"online TAS": row["online_tas"], "online TTR": row["online_ttr"]}
    used = numbers["data"]["periods"][-len(row["online_tas"]) :]
    cells = [[name, time, value, None, None, None, 1, ""] for name, values in found.items()
             for time, value in zip(used, values, strict=True) if value is not None]  # fmt: skip
    if not cells:
        return []
    series = Series(COLUMNS, _rounded(cells))
    spec = charts.lines(figures.add_data(series), used, list(found), "share of a new model", share_range(series))
    return [figures.add_chart("what was known at the time about the model in use (on-online-tas)", _legend(spec))]


def _legend(spec: dict[str, Any]) -> dict[str, Any]:
    """The same chart with its own legend, as the page has no list of methods."""
    for layer in spec.get("layer", [spec]):
        if layer.get("encoding", {}).get("color"):
            layer["encoding"]["color"]["legend"] = {"title": None, "orient": "top", "columns": 5, "symbolOpacity": 1}
            layer["encoding"].get("strokeDash", {}).pop("legend", None)  # the two make one legend
    return spec


def _maps(numbers: dict[str, Any], figures: PageCharts) -> list[PlacedChart]:
    found = numbers["decay"].get("matrix")
    if found is None:
        return []
    times, delta = numbers["data"]["periods"], found["delta"]
    made = []
    for key, title in (("accuracy", "A(t, τ)"), ("ttr", f"g(t, τ), white at δ = {delta}")):
        rows = [[a, b, found[key][i][j], *_ends(found, key, i, j), found["n"][i][j], 1, "examples"]
                for i, a in enumerate(times) for j, b in enumerate(times) if found[key][i][j] is not None]  # fmt: skip
        series = Series(["time", "tau", *COLUMNS[2:]], _rounded(rows))
        values = series.values("value")
        if not len(values):  # no new model has any skill, so there is no ratio to it
            continue
        low, high = min(values), max(max(values), min(values) + 0.01)
        data = figures.add_data(series)
        spec = (
            charts.accuracy_map(data, times, (low, high))
            if key == "accuracy"
            else charts.transfer_map(data, times, low, delta)
        )
        made.append(figures.add_chart(title, spec))
    return made


def _ends(found: dict[str, Any], key: str, i: int, j: int) -> list[Any]:
    before = "" if key == "accuracy" else "ttr_"
    return [found[f"{before}{end}"][i][j] for end in ("low", "high")]


def _rounded(rows: list[list[Any]]) -> list[list[Any]]:
    return [[round(value, 4) if isinstance(value, float) else value for value in row] for row in rows]


def _card(numbers: dict[str, Any]) -> str:
    import yaml

    card = {"provenance": numbers["provenance"], "data": numbers["data"], "headline": numbers["headline"]}
    return yaml.safe_dump(card, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
