"""Read a CSV or Parquet file as a frame: the one reader of `--data table` and of audits."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow

from driftline.data.formats.column_kinds import MIN_PARSED_FRACTION, MISSING, has_codes
from driftline.data.formats.dialect import HEAD_BYTES, Dialect, encoding_error, recognize, rows
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.io.locate import file_errors

FILE_FORMATS = {
    ".csv": "a CSV file",
    ".csv.gz": "a gzipped CSV file",
    ".tsv": "a TSV file",
    ".tsv.gz": "a gzipped TSV file",
    ".parquet": "a Parquet file",
}
LEADING_ZERO = re.compile(rb"""(?:^|[,;|"\s])0\d""")  # a cell that may begin with a zero before other digits
COMMA_NUMBER = r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d*)?"
AS_RECOGNIZED = Dialect()


def file_format(name: str) -> str | None:
    """Return the ending of a file's name that says how it is written; None if it is none of those known."""
    return next((suffix for suffix in FILE_FORMATS if name.lower().endswith(suffix)), None)


def read_file(file: Path, dialect: Dialect = AS_RECOGNIZED) -> pd.DataFrame:
    """Read the rows of a CSV or Parquet file; errors name the file."""
    form = file_format(file.name)
    if form is None:
        raise UserError(f"cannot read {file}: expected a file whose name ends in {', '.join(FILE_FORMATS)}")
    with file_errors(file, FILE_FORMATS[form]), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # pandas only warns that it drops cells
        if form != ".parquet":
            return _csv(file, dialect)
        if dialect != AS_RECOGNIZED:
            raise UserError(f"sep, encoding and decimal are for CSV files, and {file} is Parquet: leave them out")
        content = _parquet(file)
        check_duplicates(content.column_names)
        return arrow_to_frame(content)


def arrow_to_frame(content: pyarrow.Table) -> pd.DataFrame:
    """Return an Arrow table as a frame, with the index of a frame that was saved as its index again."""
    read = pd.DataFrame(content.to_pandas(ignore_metadata=True))
    index = [name for name in read.columns if name.startswith("__index_level_")]
    return read.set_index(index).rename_axis([None] * len(index)) if index else read


def _parquet(file: Path) -> pyarrow.Table:
    """Read a Parquet file as an Arrow table whose texts are valid."""
    pyarrow.array(pd.period_range("2000", periods=1))  # lets Arrow read periods as such, not as numbers
    with bounded_files.open_parquet(file) as source:
        content: pyarrow.Table = source.read()
    content.validate(full=True)
    return content


def _csv(file: Path, given: Dialect) -> pd.DataFrame:
    with bounded_files.open_file(file) as start:
        dialect = recognize(start.read(HEAD_BYTES), given)
    with bounded_files.open_file(file) as head:
        check_duplicates(_header(head, dialect))
    bounded_files.check_unpacked(file)
    try:
        return _read_csv(file, dialect)
    except UnicodeDecodeError as error:
        if dialect.encoding == "utf-8-sig":
            raise encoding_error(error.object, error.start) from None
        raise


def _header(file: BinaryIO, dialect: Dialect) -> list[str]:
    text = io.TextIOWrapper(file, dialect.encoding, errors="replace", newline="")
    first = (line for line in text if line.strip())
    start = next(first, "")
    while start.count('"') % 2 and (more := next(first, "")):  # a name with a line break
        start += more
    assert dialect.sep is not None
    return next(iter(rows(start, dialect.sep)), [])


def _read_csv(file: Path, dialect: Dialect) -> pd.DataFrame:
    """Read a CSV file; columns of numbers stay texts where some are codes such as 01067, for pandas drops the zero."""
    options: dict[str, Any] = {"sep": dialect.sep, "encoding": dialect.encoding, "index_col": False}
    if dialect.decimal == ",":
        with bounded_files.open_file(file) as whole:
            texts: pd.DataFrame = pd.read_csv(whole, dtype=str, **options)
        return texts.apply(_with_points)
    with bounded_files.open_file(file) as whole, bounded_files.open_file(file) as lines:
        read: pd.DataFrame = pd.read_csv(whole, low_memory=False, **options)
        wide = str(dialect.encoding).startswith(("utf-16", "utf-32"))  # in which LEADING_ZERO finds nothing
        numbers = list(read.select_dtypes("number")) if wide or any(map(LEADING_ZERO.search, lines)) else []
    if not numbers:
        return read
    with bounded_files.open_file(file) as again:
        texts = pd.read_csv(again, usecols=numbers, dtype=str, **options)
    return read.assign(**{str(name): texts[name] for name in numbers if has_codes(texts[name])})


def _with_points(texts: pd.Series) -> pd.Series:
    """Return a column of numbers with decimal commas as numbers; other columns, and codes such as 01067, as texts."""
    known = texts.dropna().str.strip()
    known = known[~known.isin(MISSING)]
    written = known.str.fullmatch(COMMA_NUMBER)
    if known.empty or written.mean() < MIN_PARSED_FRACTION or has_codes(known):
        return texts
    points = known.where(~written, known.str.replace(".", "").str.replace(",", "."))
    numbers = pd.to_numeric(points, errors="coerce")
    return (numbers if numbers.notna().all() else points).reindex(texts.index)


def check_duplicates(names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    twins = sorted(str(name) for name, count in Counter(names).items() if count > 1)
    if twins:
        raise ValueError(f"two columns called '{twins[0]}'; rename one")
