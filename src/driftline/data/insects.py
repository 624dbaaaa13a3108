"""INSECTS: the species and sex of mosquitoes and flies that cross an optical sensor while the temperature changes.

Souza et al., "Challenges in Benchmarking Stream Learning Algorithms with Real-world Data", DMKD 2020. Read are the USP
repository's `INSECTS-abrupt_balanced_norm.arff` (or .csv) and so on, and river's `abrupt_balanced.csv`, which has no
header. Public loaders have confused variants, so the number of rows is checked. Change points are those that several
repositories quote from Table 2 of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats.arff import read_arff
from driftline.data.formats.rows_in_order import rows_in_order
from driftline.data.source import NOT_STATED, published
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.registry import register

Variant = Literal[
    "abrupt_balanced",
    "abrupt_imbalanced",
    "gradual_balanced",
    "gradual_imbalanced",
    "incremental_balanced",
    "incremental_imbalanced",
    "incremental-abrupt_balanced",
    "incremental-abrupt_imbalanced",
    "incremental-reoccurring_balanced",
    "incremental-reoccurring_imbalanced",
]
ROWS = {
    "abrupt_balanced": (52_848, "14352, 19500, 33240, 38682, 39510"),
    "abrupt_imbalanced": (355_275, "83859, 128651, 182320, 242883, 268380"),
    "gradual_balanced": (24_150, "14028"),
    "gradual_imbalanced": (143_323, "58159"),
    "incremental_balanced": (57_018, ""),
    "incremental_imbalanced": (452_044, ""),
    "incremental-abrupt_balanced": (79_986, "26568, 53364"),
    "incremental-abrupt_imbalanced": (452_044, "150683, 301365"),
    "incremental-reoccurring_balanced": (79_986, "26568, 53364"),
    "incremental-reoccurring_imbalanced": (452_044, "150683, 301365"),
}
"""Rows and change points of each variant."""
FEATURES = 33
ADVICE = "Get INSECTS-{}_norm.arff from the USP DS repository (sites.google.com/view/uspdsrepository) and put it there"


@register("dataset", "insects")
@published(
    size="24,150 to 452,044 rows by variant, 33 inputs, 6 classes",
    license=NOT_STATED,
    where=ADVICE.format("VARIANT"),
    files=("INSECTS-*_norm.*", *(f"{name.replace('-', '_')}.csv" for name in ROWS)),
)
def insects(
    folders: Sequence[Path],
    *,
    variant: Variant = "abrupt_balanced",  # how the temperature changes, and whether classes are balanced
) -> Dataset:
    """Flights of insects in order; each class is a species and sex."""
    names = [f"INSECTS-{variant}_norm{end}" for end in (".arff", ".csv")]
    path = locate(folders, [*names, f"{variant.replace('-', '_')}.csv"], "insects", ADVICE.format(variant))
    frame = read_arff(path) if path.suffix == ".arff" else _read_csv(path)
    if len(frame.columns) != FEATURES + 1:
        raise UserError(f"{path}: expected {FEATURES} numbers and a class in a row, but found {len(frame.columns)}")
    expected, changes = ROWS[variant]
    if len(frame) != expected:
        like = [name for name, (rows, _) in ROWS.items() if rows == len(frame)]
        hint = f": it has the rows of {' and '.join(like)}" if like else ""
        raise UserError(f"{path}: {variant} has {expected:,} rows, but this file {len(frame):,}{hint}")
    note = f"the temperature changes at rows {changes}" if changes else "the temperature changes all the time"
    return rows_in_order("insects", frame, str(frame.columns[-1]), notes=(note,))


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file with a header or without one."""
    names = [*(f"f{k}" for k in range(1, FEATURES + 1)), "class"]
    with file_errors(path, f"{FEATURES} numbers and a class in a row"):
        with bounded_files.open_file(path) as file:
            has_header = not file.readline().split(b",")[0].strip().replace(b".", b"").replace(b"-", b"").isdigit()
        with bounded_files.open_file(path) as file:
            return pd.read_csv(file, names=names, header=0 if has_header else None, index_col=False)
