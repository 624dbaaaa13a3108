"""What the figures of `timeline` show, as tables: accuracy and transfer by (t, tau), and features in two dimensions.

As in `report.courses`, every function takes a record and returns one row per thing to draw, `panel` is what may be
compared, and `frame.attrs["notes"]` says what was left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from driftline.record import Record
from driftline.report.analysis import curves as series
from driftline.report.analysis.groups import groups
from driftline.report.figures.courses import framed


def accuracy(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """A(t, tau): accuracy of the model of t in period tau, means over seeds with intervals."""
    return _cells(record, "accuracy")


def transfer(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """g(t, tau): that accuracy as a share of the accuracy of the model of tau; `delta` is where a model stays valid."""
    return _cells(record, "ttr", delta=True)


def _cells(record: Record, metric: str, delta: bool = False) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    left_out, times = [], {}
    for group in groups(record):
        found = series.cells(group, metric)
        more = {"delta": group.card["run"]["options"]["delta"]} if delta and found else {}
        for method, cells in found.items():
            named = (dict(zip(cells.columns, row, strict=True)) for row in cells.rows)
            rows += [{"panel": group.title, "method": method, **row, **more} for row in named]
        left_out += [] if found else [group.title]
        times[group.title] = series.times(group)
    frame = framed(rows, "no model that is tested in later periods", left_out)
    frame.attrs["times"] = times
    return frame


def projection(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """Features of held-out samples in two dimensions, by stretches of time, of the first seed of each method."""
    rows: list[dict[str, Any]] = []
    left_out = []
    for group in groups(record):
        found = []
        for method in group.methods:
            places, how = series.projection(group, method)
            told = {"panel": group.title, "method": method, "seed": group.runs_of(method)[0].seed, "projection": how}
            found += [{**told, **dict(zip(places.columns, row, strict=True))} for row in places.rows]
        rows += found
        left_out += [] if found else [group.title]
    return framed(rows, "no features were kept", left_out)
