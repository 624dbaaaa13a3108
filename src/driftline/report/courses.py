"""What the figures of a stream show, as tables: curves, what queries are made of, how methods differ, what they gain.

As in `report.landscape`, every function takes a record and returns one row per thing to draw, `panel` is what may be
compared, and `frame.attrs["notes"]` says what was left out. All of it is in the record; nothing is opened again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from driftline import registry
from driftline.errors import UserError
from driftline.metrics import title
from driftline.record import Record
from driftline.report import differences as pairs
from driftline.report import series
from driftline.report.composition import COLUMNS, Composition, of_file, of_group
from driftline.report.gains import gains as gained
from driftline.report.groups import Group, groups, together
from driftline.report.speeds import over_speeds

DYNAMICS = ("alpha", "beta", "gamma")


def curves(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """The headline metrics that are shares at every time at which they are known: means over seeds with intervals.

    Runs of `test-time` that differ in speed alone are taken together.
    """
    found: list[dict[str, Any]] = []
    left_out, units = [], {}
    for group in over_speeds(groups(record)):
        headline = registry.get("benchmark", group.card["run"]["benchmark"]).headline
        metrics, steps = series.over_time(group, headline), _steps(group)
        for metric, rows in metrics.items():
            for row in rows.rows:
                number = dict(zip(rows.columns, row, strict=True))
                found.append({"panel": group.title, "metric": metric, "step": steps[number["time"]], **number})
        left_out += [] if metrics else [group.title]
        units[group.title] = series.unit(group)
    frame = framed(found, "no metric over time", left_out)
    frame.attrs["units"] = units
    return frame


def composition(record: Record, *, where: Path | None = None, stream: Path | None = None) -> pd.DataFrame:
    """How many queries, and how many errors of the upstream model, each cluster has at each step.

    Of each kind of run the first stream; or, with `stream`, a released one from its file.
    """
    if stream is not None:
        one = of_file(stream, where)
        frame = framed(_counts(one), "", [])
        total, known = int(one.queries.sum()), float(one.satisfaction[-1])
        frame.attrs["notes"] = [f"the upstream model answers {known:.2%} of {total:,} queries right (CSR)"]
        return frame
    rows, unlike, unknown = [], [], []
    for group in groups(record):
        found = of_group(group)
        if found is None:
            unlike.append(group.title)
            continue
        rows += _counts(found, group.title)
        unknown += [] if found.errors is not None else [group.title]
    frame = framed(rows, "no stream of queries", unlike)
    frame.attrs["notes"] += [f"errors are not known without frozen: {title}" for title in unknown]
    return frame


def differences(
    record: Record, *, where: Path | None = None, spans: str | None = None, metric: str | None = None
) -> pd.DataFrame:
    """For each two methods, how often they answer differently in a span of steps; or how far apart a metric is."""
    rows, left_out = [], []
    for group in groups(record):
        asked = "composition" in group.card["protocol"]
        within = pairs.spans_of(spans, len(series.times(group))) if asked else ()
        found = list(pairs.rows(group, within, metric)) if asked else []
        rows += [{"panel": group.title, "of": metric or pairs.ANSWERS, **row} for row in found]
        left_out += [] if found else [group.title]
    return framed(rows, "no two methods in a stream of queries", left_out)


def gains(record: Record, *, where: Path | None = None, over: str = "frozen", metric: str = "oec") -> pd.DataFrame:
    """What each method's final value gains over another method's on the same seeds, by what the stream is like."""
    free = [f"refinement.{name}" for name in DYNAMICS]
    rows: list[dict[str, Any]] = []
    found = {group.title: (group, gained(group, over, metric)) for group in groups(record)}
    for told, members in together((group for group, cells in found.values() if cells), free):
        for group in sorted(members, key=lambda group: tuple(_options(group).get(name, 0) for name in DYNAMICS)):
            cells = found[group.title][1]
            stream = str(group.card["protocol"].get("protocol", ""))
            for method, cell in cells.items():
                number = {
                    "value": cell.value,
                    "low": cell.low,
                    "high": cell.high,
                    "seeds": len(cell.by_seed),
                    "n": cell.n,
                    "interval": cell.interval,
                }
                what = {"panel": told or _head(group), "stream": stream, "metric": metric, "over": over}
                rows.append({**what, "method": method, **number})
    left_out = [title for title, (_, cells) in found.items() if not cells]
    return framed(rows, f"no final {title(metric)} of {over} and another method on the same seed", left_out)


def _head(group: Group) -> str:
    run = group.card["run"]
    return " · ".join(str(name) for name in (run["benchmark"], run["data"]["name"], run["model"]["name"]))


def _options(group: Group) -> dict[str, Any]:
    options: dict[str, Any] = group.card["run"]["options"]
    return options


def _steps(group: Group) -> dict[str, int]:
    return {name: k for k, name in enumerate(series.times(group), 1)}


def _counts(one: Composition, of: str = "") -> list[dict[str, Any]]:
    panel = ", ".join(filter(None, (of, one.title)))
    return [
        {"panel": panel, "stream": name, **dict(zip(COLUMNS, row, strict=True))}
        for name, rows in one
        for row in rows.rows
    ]


def framed(rows: list[dict[str, Any]], reason: str, left_out: Iterable[str]) -> pd.DataFrame:
    """Rows as a figure's table, with a note on what was left out for a reason; there must be some."""
    titles = "; ".join(left_out)
    notes = [f"left out ({reason}): {titles}"] if titles else []
    if not rows:
        raise UserError(f"there is nothing to draw. {'; '.join(notes)}")
    frame = pd.DataFrame(rows)
    frame.attrs["notes"] = notes
    return frame
