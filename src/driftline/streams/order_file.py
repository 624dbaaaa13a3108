"""Orders of samples that are read from a file.

A table (.csv, .csv.gz, .parquet) has a row per sample and names it by `id` or by `row`, its place in the dataset from
0. Other columns, each for the benchmarks that use it: `step`, the number of the time step; `split`, where `upstream`
marks samples to train on that are not in the stream; `corruption` and `severity`. A text file (.txt) has an id per
line; an array (.npy) holds ids, or whole numbers that are places. A .json file is a released stream of continual model
refinement, or a list of them; its records are found by their texts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from driftline.data import Dataset, file_errors, text_to_text, weights_file
from driftline.data.formats.safe_pickle import load_npy
from driftline.data.formats.table_file import read_file
from driftline.errors import UserError, shorten
from driftline.io import bounded_files

TABLE = "a table with the columns id or row"
FORMATS = {
    **dict.fromkeys((".csv", ".csv.gz", ".parquet"), TABLE),
    ".txt": "a text file with an id per line",
    ".npy": "an array of ids or of row numbers",
    **dict.fromkeys((".json", ".json.gz"), text_to_text.STREAM_FORMAT),
}
TEXT = "input"
KEYS = ("id", "row", TEXT)
"""The columns that may name a sample; released streams name it by its text."""
STREAM, UPSTREAM = "stream", "upstream"
"""The values of the column `split`."""


@dataclass(frozen=True, eq=False)
class Order:
    """Samples of a dataset in a given order."""

    name: str
    """The file, as the user wrote it."""
    number: int
    """Which of the streams in the file, from 0."""
    rows: np.ndarray
    """Places in the dataset, in the order of the stream."""
    listed: np.ndarray
    """All places that the file lists, also those of its other streams."""
    unlisted: np.ndarray
    """Places of the other samples, without transformations of those that are listed."""
    upstream: np.ndarray | None
    """Places of the samples to train on; None if the file does not mark any."""
    columns: pd.DataFrame
    """The other columns, as texts, one row for each sample of the stream."""

    def numbers(self, column: str, default: float | None = None) -> np.ndarray:
        """Return a column of numbers; an empty cell has the default, if there is one."""
        texts = self.columns[column] if default is None else self.columns[column].replace("", str(default))
        values = pd.to_numeric(texts, errors="coerce").to_numpy(float)
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise UserError(f"{self.name}: the {column} {self.columns[column].iloc[at]!r} is not a number")
        return values

    def steps(self, size: int) -> list[np.ndarray]:
        """Return the samples of each step by their places in the order: as the file says, else `size` at a time."""
        n = len(self.rows)
        if "step" not in self.columns:
            return np.split(np.arange(n), range(size, n, size))
        numbers = self.numbers("step")
        if (np.diff(numbers) < 0).any():
            raise UserError(f"{self.name}: the steps are not in ascending order")
        return np.split(np.arange(n), np.flatnonzero(np.diff(numbers)) + 1)


def read_order(
    name: str, dataset: Dataset, columns: Sequence[str] = (), *, repeats: bool = True, number: int = 0
) -> Order:
    """Return the order in a file, which is a path or a name in a data folder.

    `columns`: those that the file may have beside `id` or `row`. `repeats`: whether a sample may come again. `number`:
    which stream of a list of released streams, from 0; after the last comes the first.
    """
    path = weights_file(name)
    if path is None:
        raise UserError(f"there is no file {name}: --stream names a file with the order of the samples")
    with file_errors(path, FORMATS.get(_suffix(path), f"a file whose name ends in {', '.join(FORMATS)}")):
        streams = _read(path)
    for frame in streams:
        _check_columns(name, frame, columns)
    places = [_places(name, frame, dataset) for frame in streams]
    number %= len(streams)
    rows, frame = places[number], streams[number]
    marked = _marked(name, frame)
    _check_rows(name, rows[~marked], rows[marked], repeats, dataset.base)
    rest = frame.drop(columns=[*KEYS, "split"], errors="ignore")[~marked].reset_index(drop=True)
    upstream = rows[marked] if "split" in frame else None
    listed = np.unique(np.concatenate(places))
    originals = np.arange(len(dataset.samples)) if dataset.base is None else dataset.base
    unlisted = np.flatnonzero(~np.isin(originals, originals[listed]))
    return Order(name, number, rows[~marked], listed, unlisted, upstream, rest)


def _suffix(path: Path) -> str:
    return "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()


def _read(path: Path) -> list[pd.DataFrame]:
    """Return the streams of a file, one table of texts each."""
    match _suffix(path):
        case ".json" | ".json.gz":
            return [_released(stream) for stream in text_to_text.read_streams(path)]
        case ".npy":
            array = load_npy(path, FORMATS[".npy"])
            if array.ndim != 1:
                raise ValueError(f"an array of {array.ndim} dimensions")
            return [pd.DataFrame({"row" if array.dtype.kind in "iu" else "id": array}, dtype=str)]
        case ".txt":
            with bounded_files.open_file(path) as file:
                lines = [line.decode().strip() for line in file]
            return [pd.DataFrame({"id": [line for line in lines if line]}, dtype=str)]
        case ".csv" | ".csv.gz":
            bounded_files.check_unpacked(path)
            with bounded_files.open_file(path) as file, warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # pandas only warns that it drops cells
                return [pd.read_csv(file, dtype=str, keep_default_na=False, index_col=False, encoding="utf-8-sig")]
        case ".parquet":
            frame = read_file(path)
            return [frame.astype(str).mask(frame.isna(), "")]
        case other:
            raise ValueError(f"a name that ends in '{other}'")


def _released(stream: Sequence[Sequence[text_to_text.TextRecord]]) -> pd.DataFrame:
    items = [(item.text, str(step)) for step, items in enumerate(stream) for item in items]
    return pd.DataFrame(items, columns=[TEXT, "step"], dtype=str)


def _check_columns(name: str, frame: pd.DataFrame, columns: Sequence[str]) -> None:
    if sum(key in frame for key in KEYS) != 1:
        raise UserError(f"{name} needs one column that names the samples: id, or row for their places from 0")
    for column in frame.columns:
        if column not in (*KEYS, *columns):
            known = ", ".join(("id", "row", *columns))
            raise UserError(f"{name} has a column '{column}', and this benchmark reads only {known}")
    if not len(frame):
        raise UserError(f"{name} lists no sample")


def _places(name: str, frame: pd.DataFrame, dataset: Dataset) -> np.ndarray:
    """Return the places in the dataset of the samples that a table names."""
    n, named = len(dataset.samples), f"dataset '{dataset.name}'"
    if "row" in frame:
        rows = pd.to_numeric(frame["row"], errors="coerce").to_numpy(float)
        wrong = np.flatnonzero(~((rows >= 0) & (rows < n) & (rows == np.floor(rows))))
        if len(wrong):
            given = shorten(frame["row"].iloc[wrong[0]])
            raise UserError(f"{name}: the row {given} in entry {wrong[0] + 1} is not from 0 to {n - 1}, as in {named}")
        return rows.astype(np.int64)
    key = "id" if "id" in frame else TEXT
    values = dataset.samples.id.tolist() if key == "id" else dataset.samples.x
    known = {str(one): row for row, one in enumerate(values)}
    places = [known.get(one, -1) for one in frame[key]]
    if -1 in places:
        at = places.index(-1)
        raise UserError(f"{name}: the {key} {shorten(frame[key].iloc[at])!r} in entry {at + 1} is not in {named}")
    return np.array(places, np.int64)


def _marked(name: str, frame: pd.DataFrame) -> np.ndarray:
    """Return which samples are marked as upstream."""
    if "split" not in frame:
        return np.zeros(len(frame), bool)
    strange = frame["split"][~frame["split"].isin((STREAM, UPSTREAM))]
    if len(strange):
        raise UserError(f"{name}: the split '{shorten(strange.iloc[0])}' is neither {STREAM} nor {UPSTREAM}")
    return (frame["split"] == UPSTREAM).to_numpy()


def _check_rows(name: str, rows: np.ndarray, upstream: np.ndarray, repeats: bool, base: np.ndarray | None) -> None:
    if not len(rows):
        raise UserError(f"{name} has no sample in its stream")
    if len(shared := np.intersect1d(rows, upstream)):
        raise UserError(f"{name}: row {shared[0]} of the data is both upstream and in the stream")
    if base is not None and len(shared := upstream[np.isin(base[upstream], base[rows])]):
        raise UserError(f"{name}: row {shared[0]} of the data is upstream, and a transformation of it in the stream")
    found, counts = np.unique(rows, return_counts=True)
    if not repeats and counts.max() > 1:
        raise UserError(
            f"{name}: row {found[counts.argmax()]} of the data comes {counts.max()} times; only once is allowed"
        )
