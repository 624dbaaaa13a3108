"""TabReD: eight industrial tables with a time and their splits by time.

Rubachev et al., "TabReD: Analyzing Pitfalls and Filling the Gaps in Tabular Deep Learning Benchmarks", ICLR 2025. Read
is what its preprocessing writes: `info.json` with the task, `X_num.npy`, `X_bin.npy`, `X_cat.npy`, `Y.npy`, and for
each split a folder with `train_idx.npy`, `val_idx.npy` and `test_idx.npy`. Rows are in time order, and time is the
number of a row. A category with more than 50 levels in the earliest tenth is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from driftline.data import Dataset, file_errors, locate_user_path
from driftline.data.formats.column_kinds import n_earliest
from driftline.data.formats.rows_in_order import rows_in_order
from driftline.data.formats.safe_pickle import load_npy
from driftline.data.source import published
from driftline.data.table import MAX_LEVELS
from driftline.errors import UserError, unknown_name
from driftline.io import bounded_files
from driftline.registry import register

TASKS = {"regression": "number", "binclass": "classes", "multiclass": "classes"}
PARTS = {"X_num": "number", "X_bin": "number", "X_cat": "category"}
TARGET = "Y"
ADVICE = "Make it with the preprocessing of github.com/yandex-research/tabred (a Kaggle account is needed)"


@register("dataset", "tabred")
@published(
    size="28,321 to 423,795 rows, 103 to 986 inputs",
    license="terms of the Kaggle competitions; not stated for those of Yandex",
    where=ADVICE,
    files=("*/split-default/test_idx.npy",),
)
def tabred(
    folders: Sequence[Path],
    *,
    path: str,  # folder of the table, such as weather
    split: str = "default",  # default, sliding-window-0 and so on: rows in no part of it are left out
    published_split: bool = True,  # use the test rows of the split
) -> Dataset:
    """The rows of a table in time order, with the test rows of a split."""
    base = locate_user_path(folders, path, "tabred", ADVICE)
    info = base / "info.json"
    with file_errors(info, "TabReD's info.json with a task_type"), bounded_files.open_file(info) as file:
        task: Any = TASKS[str(json.load(file)["task_type"])]
    parts = _split(base, split)
    rows = np.unique(np.concatenate(list(parts.values())))
    y = load_npy(base / "Y.npy", "the targets").ravel()
    if rows[-1] >= len(y):
        raise UserError(f"{base}: the split {split} names row {rows[-1]}, but Y.npy has {len(y)} rows")
    columns, kinds, left_out = _columns(base, rows)
    frame = pd.DataFrame({**columns, TARGET: y[rows]})
    test = np.isin(rows, parts["test"])
    notes = (f"{base.name}, split {split}: {int(test.sum()):,} test rows of {len(rows):,}", *left_out)
    made = rows_in_order("tabred", frame, TARGET, task=task, columns=kinds, notes=notes)
    return replace(made, test=test if published_split else None)


def _split(base: Path, split: str) -> dict[str, np.ndarray]:
    """Return the rows of the parts of a split; parts that overlap are refused."""
    folder = base / f"split-{split}"
    if not folder.is_dir():
        known = sorted(path.name.removeprefix("split-") for path in base.glob("split-*"))
        raise unknown_name("split", split, known, f" (of {base})")
    parts = {part: load_npy(folder / f"{part}_idx.npy", "numbers of rows").ravel() for part in ("train", "val", "test")}
    if len(np.unique(np.concatenate(list(parts.values())))) < sum(map(len, parts.values())):
        raise UserError(f"{folder}: a row is in two parts of the split")
    return parts


def _columns(base: Path, rows: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, str], tuple[str, ...]]:
    """Return the columns of the inputs, their kinds, and a note on those that are left out."""
    columns, kinds, wide = {}, {}, []
    for part, kind in PARTS.items():
        if not (base / f"{part}.npy").is_file():
            continue
        table = load_npy(base / f"{part}.npy", "a table of numbers")[rows]
        for k, column in enumerate(table.T):
            name = f"{part}_{k}"
            if kind == "category" and len(np.unique(column[: n_earliest(len(column))])) > MAX_LEVELS:
                wide.append(name)
                continue
            columns[name] = column.astype(str) if kind == "category" else column
            kinds[name] = kind
    if not columns:
        raise UserError(f"{base}: none of {', '.join(f'{part}.npy' for part in PARTS)} has a column that can be used")
    return columns, kinds, ((f"left out, with more than {MAX_LEVELS} levels: {', '.join(wide)}",) if wide else ())
