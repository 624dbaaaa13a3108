"""Electricity (elec2): does the price in New South Wales go up or down against the mean of the last 24 hours?

Harries, "SPLICE-2 Comparative Evaluation: Electricity Pricing", 1999: half hours from May 1996 to December 1998. Copies
differ. River's and OpenML's `electricity.csv` and MOA's `elecNormNew.arff` have eight inputs and the classes UP and
DOWN. scikit-multiflow's `elec.csv` lacks date and day, and 1 is UP; in driftDatasets' `elec2_label.dat`, 1 is DOWN.
Here the classes are DOWN and UP in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats.arff import read_arff
from driftline.data.formats.rows_in_order import rows_in_order
from driftline.data.formats.table_file import read_file
from driftline.data.source import NOT_STATED, published
from driftline.errors import UserError
from driftline.registry import register

FILES = (
    *("electricity.csv", "elec2.csv", "elec2.csv.gz", "tabular/elec2.csv.gz", "elecNormNew.arff"),
    *("elec2_data.dat", "elec.csv"),
)
LABELS = "elec2_label.dat"
INPUTS = ("date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")
ADVICE = (
    "Get electricity.csv from OpenML (data set 151) or maxhalford.github.io/files/datasets/electricity.zip, and put it "
    "there"
)


@register("dataset", "elec2")
@published(size="45,312 rows, 8 inputs, 2 classes", license=NOT_STATED, where=ADVICE, files=FILES)
def elec2(folders: Sequence[Path]) -> Dataset:
    """Half hours of an electricity market in order; a week has 336 rows."""
    path = locate(folders, FILES, "elec2", ADVICE)
    frame = _read(path)
    with file_errors(path, "a row per half hour with the column class"):
        frame["class"] = _direction(frame["class"], path)
    return rows_in_order("elec2", frame, "class", notes=(f"{path.name}; {len(frame.columns) - 1} inputs",))


def _read(path: Path) -> pd.DataFrame:
    if path.suffix == ".arff":
        return read_arff(path)
    if path.suffix != ".dat":
        return read_file(path)
    labels = locate([path.parent], [LABELS], "elec2", "It stands beside elec2_data.dat")
    with file_errors(path, "eight numbers in a line"):
        frame = pd.read_csv(path, sep=r"\s+", header=None, names=list(INPUTS), dtype=float)
    with file_errors(labels, "0 or 1 in a line"):
        return frame.assign(**{"class": pd.read_csv(labels, header=None)[0].to_numpy()})


def _direction(column: pd.Series, path: Path) -> pd.Series:
    """Return UP or DOWN for each row, whatever a copy calls them."""
    names = {0: "UP", 1: "DOWN"} if path.suffix == ".dat" else {0: "DOWN", 1: "UP"}
    texts = {**{str(number): name for number, name in names.items()}, "UP": "UP", "DOWN": "DOWN"}
    found = column.astype(str).str.strip().str.removesuffix(".0").map(texts)
    if found.isna().any():
        raise UserError(f"{path}: the class {column[found.isna()].iloc[0]!r} is neither UP nor DOWN, nor 1 or 0")
    return found
