"""Your own images with a date and a label each: a folder, or a table that lists them.

A folder holds one folder per label, and the date is in the name of each file (option `pattern`). A table is a CSV
file with a row per picture and columns for its file, its label and its time; files are looked for beside the table, or
in the folder `folder` there, such as `train` for iWildCam's `metadata.csv` (Koh et al., "WILDS", ICML 2021).
Pictures are squeezed to a square of `size` pixels when they are needed, in color unless `gray`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from driftline.data import Dataset, file_errors, locate_user_path
from driftline.data.formats import images
from driftline.data.formats.decoded_images import image_files
from driftline.errors import UserError, unknown_name
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

PATTERN = r"(?<!\d)(?P<time>\d{4}-\d{2}-\d{2}|\d{8}|\d{4})(?!\d)"
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
Row = tuple[str, str, str]  # a file as it is written, its label, its time as it is written


@register("dataset", "dated-images")
def dated_images(
    folders: Sequence[Path],
    *,
    path: str,  # folder with a folder of images per class, or a CSV file
    pattern: str = PATTERN,  # regular expression for the date in a file's name, with a group `time`
    file: str = "file",  # CSV: column of the image files
    label: str = "label",  # CSV: column of the classes
    time: str = "time",  # CSV: column of the times
    folder: str = "",  # CSV: folder of the image files
    size: int = 64,  # height and width of the images in pixels
    gray: bool = False,  # convert images to gray
) -> Dataset:
    """The pictures of a folder (label/name, the date in the name by `pattern`) or of a CSV file, in time order.

    A time is a number such as a year, or a date such as 2020-01-31 or 20200131. An id is the file as listed.
    """
    source = locate_user_path(folders, path, "dated-images")
    inside = source.is_dir()
    rows = _from_folder(source, pattern) if inside else _from_table(source, file, label, time)
    when = _times(source, rows)
    order = np.argsort(when, kind="stable")
    classes = sorted({label for _, label, _ in rows})
    if len(classes) < 2:
        raise UserError(f"{source}: expected two labels or more, but found {', '.join(classes) or 'no picture'}")
    images.check_size(size)
    base = source if inside else source.parent / folder
    index = {name: k for k, name in enumerate(classes)}
    y, ids = np.array([index[rows[k][1]] for k in order], np.int64), np.array([rows[k][0] for k in order])
    shape = (size, size, 1 if gray else 3)
    x = image_files(base, ids, partial(images.read_image, size=size, gray=gray), shape)
    samples = Samples(x=x, y=y, id=ids, time=when[order])
    notes = [f"{len(rows):,} pictures of {source.name} in {len(classes)} classes, brought to {size} x {size} pixels"]
    copies = _count_copies([base / str(name) for name in ids])
    notes += [f"{copies:,} pictures are exact copies of another one, which may be trained on"] if copies else []
    return Dataset("dated-images", samples, Classification(tuple(classes)), tuple(notes), model="yearbook-cnn")


def _count_copies(files: list[Path]) -> int:
    """Return how many files have the content of an earlier one."""
    by_size = defaultdict(list)
    for file in files:
        with file_errors(file, "a picture"):
            by_size[file.stat().st_size].append(file)
    same_size = [group for size, group in by_size.items() if size and len(group) > 1]
    return sum(len(group) - len({hashlib.sha256(file.read_bytes()).digest() for file in group}) for group in same_size)


def _from_folder(folder: Path, pattern: str) -> list[Row]:
    try:
        date = re.compile(pattern)
    except re.error as error:
        raise UserError(f"pattern {pattern!r} is not a regular expression: {error}") from None
    if "time" not in date.groupindex:
        raise UserError(f"pattern {pattern!r} has no group (?P<time>...) that says which part of a name is the time")
    rows: list[Row] = []
    for file in sorted(folder.glob("*/**/*")):
        if file.suffix.lower() not in SUFFIXES or file.name.startswith("."):
            continue
        found = date.search(file.name)
        if not found or not found["time"]:
            raise UserError(f"no time in the name of {file} by the pattern {pattern}: --set data.pattern=...")
        inside = file.relative_to(folder)
        rows.append((inside.as_posix(), inside.parts[0], found["time"]))
    return rows


def _from_table(table: Path, file: str, label: str, time: str) -> list[Row]:
    with file_errors(table, "a CSV file that lists pictures"), bounded_files.open_file(table) as content:
        frame = pd.read_csv(content, dtype=str, keep_default_na=False, index_col=False, encoding_errors="strict")
    for name in (file, label, time):
        if name not in frame.columns:
            raise unknown_name(f"column of {table.name}", name, map(str, frame.columns), " (options file, label, time)")
    rows = [(str(a).strip(), str(b).strip(), str(c).strip()) for a, b, c in frame[[file, label, time]].to_numpy()]
    first: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        for name, value in zip((file, label, time), row, strict=True):
            if not value:
                raise UserError(f"{table}: no '{name}' in row {number} under the header; fill it in or drop the row")
        other = first.setdefault(os.path.normpath(row[0]), number)
        if other != number:
            raise UserError(f"{table}: rows {other} and {number} under the header are the same file, {row[0]}")
    return rows


def _times(source: Path, rows: list[Row]) -> np.ndarray:
    """Return all times as numbers, or all as dates in UTC (in days if none has an hour)."""
    moments: list[float | datetime] = []
    for file, _, text in rows:
        moment = _moment(text)
        if moment is None:
            raise UserError(f"{source}: the time of {file} is {text!r}; expected a number or a date such as 2020-01-31")
        if moments and isinstance(moment, datetime) != isinstance(moments[0], datetime):
            raise UserError(f"{source}: the times of {rows[0][0]} and {file} are a number and a date; use one kind")
        moments.append(moment)
    if not moments or not isinstance(moments[0], datetime):
        numbers = np.array(moments, float)
        return numbers.astype(np.int64) if (numbers % 1 == 0).all() else numbers
    exact = np.array(moments, "datetime64[us]")
    days = exact.astype("datetime64[D]")
    return days if (days == exact).all() else exact


def _moment(text: str) -> float | datetime | None:
    """Parse a number or a date (without time zone, in UTC); eight digits are a day."""
    try:
        number = None if re.fullmatch(r"\d{8}", text) else float(text)
        if number is not None:
            return number if np.isfinite(number) else None
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
