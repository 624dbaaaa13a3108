"""Airlines: is a flight delayed?

The data of Ikonomovska (Data Expo 2009), reduced to a classification task for MOA: `airlines.arff`, on OpenML data set
1169, also as CSV. There is no date, only the day of the week and the minute of the day; rows are in time order. An
airport is one of 293, so its two columns are given as shares: how many of the earliest tenth of all flights leave from
it, or arrive there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from driftline.data import Dataset, locate
from driftline.data.formats.arff import read_arff
from driftline.data.formats.column_kinds import n_earliest
from driftline.data.formats.rows_in_order import rows_in_order
from driftline.data.formats.table_file import read_file
from driftline.data.source import NOT_STATED, published
from driftline.errors import UserError
from driftline.registry import register

FILES = ("airlines.arff", "airlines.arff.gz", "airlines.csv", "airlines.csv.gz")
COLUMNS = ("Airline", "Flight", "AirportFrom", "AirportTo", "DayOfWeek", "Time", "Length", "Delay")
ADVICE = (
    "Get airlines.arff from moa.cms.waikato.ac.nz/datasets, or OpenML data set 1169 as airlines.csv, and put it there"
)


@register("dataset", "airlines")
@published(size="539,383 rows, 7 inputs, 2 classes", license=NOT_STATED, where=ADVICE, files=FILES)
def airlines(folders: Sequence[Path]) -> Dataset:
    """Flights in order, and whether they were delayed."""
    path = locate(folders, FILES, "airlines", ADVICE)
    frame = read_arff(path) if ".arff" in path.suffixes else read_file(path)
    if lacking := [name for name in COLUMNS if name not in frame]:
        raise UserError(f"{path}: expected the columns {', '.join(COLUMNS)}, but found no {lacking[0]}")
    frame = frame[list(COLUMNS)]
    delayed = frame["Delay"].astype(str).str.removesuffix(".0").map({"0": "on time", "1": "delayed"})
    if delayed.isna().any():
        raise UserError(f"{path}: Delay is 0 or 1, but found {frame['Delay'][delayed.isna()].iloc[0]!r}")
    shares = {name: _shares(frame[name]) for name in ("AirportFrom", "AirportTo")}
    kinds = {"Airline": "category", "DayOfWeek": "category"}
    days = frame["DayOfWeek"].astype(str).str.removesuffix(".0")
    prepared = frame.assign(**shares, DayOfWeek=days, Delay=delayed)
    return rows_in_order("airlines", prepared, "Delay", columns=kinds)


def _shares(airports: pd.Series) -> pd.Series:
    """Return for each flight which share of the earliest tenth has its airport."""
    early = airports.iloc[: n_earliest(len(airports))]
    return airports.map(early.value_counts(normalize=True)).fillna(0.0).astype(float)
