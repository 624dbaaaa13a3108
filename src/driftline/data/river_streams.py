"""The streams that the package river carries in its files, for classification and regression.

Montiel et al., "River: machine learning for streaming data in Python", JMLR 2021. Rows keep river's order, and time is
the number of a row. Left out are its streams with several targets (SolarFlare, Yeast), with a time and no other input
(AirlinePassengers, WaterFlow), and those that it downloads: for elec2 and INSECTS see the datasets of these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Literal

import pandas as pd

from driftline.data import Dataset
from driftline.data.formats.rows_in_order import rows_in_order
from driftline.data.source import published
from driftline.errors import UserError
from driftline.registry import register

STREAMS = {
    "bananas": ("Bananas", "classes"),
    "chick-weights": ("ChickWeights", "number"),
    "image-segments": ("ImageSegments", "classes"),
    "phishing": ("Phishing", "classes"),
    "shuttle": ("Shuttle", "classes"),
    "sp500": ("SP500Stocks", "number"),
    "trump-approval": ("TrumpApproval", "number"),
}
"""For each stream its class in `river.datasets`, and what is predicted."""
TARGET = "target of the stream"


@register("dataset", "river")
@published(
    size="578 to 49,097 rows by stream",
    license="BSD-3 package; licenses of the data not stated",
    where='pip install "driftline[river]"',
    package="river",
)
def river(
    folders: Sequence[Path],
    *,
    stream: Literal[
        "bananas", "chick-weights", "image-segments", "phishing", "shuttle", "sp500", "trump-approval"
    ] = "phishing",  # the stream
) -> Dataset:
    """A stream of river's own files; rows in order."""
    from river import datasets

    name, task = STREAMS[stream]
    make = getattr(datasets, name, None)
    if make is None:
        raise UserError(f"dataset 'river': the installed river has no {name}; upgrade it")
    rows = [{**{k: _number(v) for k, v in x.items()}, TARGET: y} for x, y in make()]
    return rows_in_order("river", pd.DataFrame(rows), TARGET, task=task, notes=(f"river.datasets.{name}",))  # type: ignore[arg-type]


def _number(value: object) -> object:
    """Return a day as its number, anything else as it is."""
    return value.toordinal() if isinstance(value, date) else value
