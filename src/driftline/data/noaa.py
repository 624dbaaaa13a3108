"""NOAA weather: does it rain at Offutt Air Force Base near Bellevue, Nebraska? Days from 1949 to 1999.

Elwell and Polikar, "Incremental Learning of Concept Drift in Nonstationary Environments", TNN 2011. Read is
scikit-multiflow's `weather.csv`, whose inputs have no names; 1 is rain.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from driftline.data import Dataset, locate
from driftline.data.formats.rows_in_order import rows_in_order
from driftline.data.formats.table_file import read_file
from driftline.data.source import published
from driftline.errors import UserError
from driftline.registry import register

FILES = ("weather.csv", "weather.csv.gz", "tabular/weather.csv.gz")
ADVICE = "Get weather.csv from github.com/scikit-multiflow/streaming-datasets and put it there"
CLASSES = {"0": "no rain", "1": "rain"}


@register("dataset", "noaa")
@published(
    size="18,159 rows, 8 inputs, 2 classes",
    license="US government data; the copy is in a BSD-3 package",
    where=ADVICE,
    files=FILES,
)
def noaa(folders: Sequence[Path]) -> Dataset:
    """Days in order, and whether it rained; a year has 365 rows."""
    path = locate(folders, FILES, "noaa", ADVICE)
    frame = read_file(path)
    if "target" not in frame or not frame["target"].astype(str).isin(CLASSES).all():
        raise UserError(f"{path}: expected scikit-multiflow's weather.csv, with a column target of 0 and 1")
    frame["target"] = frame["target"].astype(str).map(CLASSES)
    return rows_in_order("noaa", frame, "target")
