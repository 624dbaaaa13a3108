"""Draw rows of a large table, period by period, so that an audit reads what it uses and not the whole table.

Whether a row is drawn depends on a hash of its file and number alone. Of the periods of a calendar each has its own
share, so that all give about the same number of rows; in other cases one share holds for all rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from driftline.auditing.sql_table import ROW, SqlTable, is_many, open_table, quoted
from driftline.auditing.table import CALENDAR, MAX_PERIODS, choose_cut
from driftline.data.formats.dialect import Dialect
from driftline.data.formats.table_file import arrow_to_frame, file_format, read_file
from driftline.errors import UserError, unknown_name
from driftline.streams.timeline import period_labels

LARGE_CSV = 2**28  # bytes from which a CSV file is drawn from instead of read
HASH_VALUES = 2**64


@dataclass(frozen=True)
class Request:
    """What an audit needs of a table."""

    time: str
    target: str
    columns: tuple[str, ...] | None
    """Other columns; None: all."""
    period: str
    rows: int
    """Rows of a period."""
    seed: int
    dialect: Dialect
    own_times: bool = False
    """Whether times are numbers, or written in a way that DuckDB does not know."""


@dataclass(frozen=True)
class Drawn:
    """Rows of a table, and how they were drawn."""

    name: str
    table: pd.DataFrame
    period: str
    rows: int
    """Rows of the whole table that have a target."""
    note: str = ""


def is_large(source: str, rows: int) -> bool:
    """Return whether a local file has more rows than an audit with this many rows per period uses."""
    form = file_format(source)
    if find_spec("duckdb") is None or form is None or not os.path.isfile(source):
        return False
    if form != ".parquet":
        return os.path.getsize(source) > LARGE_CSV
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(source) as file:
            return int(file.metadata.num_rows) > rows * MAX_PERIODS
    except (OSError, ValueError):
        return False  # the reader of whole files says what is wrong


def drawn_from(source: str | None, sql: str | None, request: Request) -> Drawn | None:
    """Return the drawn rows of a source; None if it is one file of moderate size, which is read as a whole."""
    if sql is None and source is not None and not is_many(source) and not is_large(source, request.rows):
        return None
    with open_table(source, sql, request.dialect) as table:
        return _draw(table, request)


def _draw(table: SqlTable, request: Request) -> Drawn:
    types = table.types()
    named = [request.time, request.target, *(request.columns or ())]
    for name in named:
        if name not in types:
            raise unknown_name(f"column of {table.name}", name, types)
    time, target = quoted(request.time), quoted(request.target)
    without_time = f"count(*) filter ({target} is not null and {time} is null)"
    counts = table.rows(f"select count(*), count({target}), {without_time} from {{rows}}")[0]
    rows, labeled, timeless = map(int, counts)
    if timeless:
        raise UserError(f"time column '{request.time}' has {timeless} missing values; drop those rows")
    chosen = list(types) if request.columns is None else list(dict.fromkeys(named))
    if rows <= request.rows * MAX_PERIODS:
        return Drawn(table.name, _read(table, chosen, request, "true"), request.period, labeled)
    moment = _moment(table, request, types[request.time])
    period, shares = _shares(table, request, moment, rows) if moment else (request.period, None)
    if moment is None or shares is None:
        return _uniform(table, request, chosen, rows, labeled)
    table.connection.register("shares", shares)
    joined = f"join shares on date_trunc('day', {moment}) = day"
    drawn = _read(table, chosen, request, f"{_hash(request)} < share", joined)
    note = (
        f"{len(drawn):,} of {rows:,} rows were read: about {request.rows:,} of each {period}, drawn by a hash of the "
        "row's number; the kinds of columns and all warnings refer to these rows"
    )
    return Drawn(table.name, drawn, period, labeled, note)


def _uniform(table: SqlTable, request: Request, chosen: Sequence[str], rows: int, labeled: int) -> Drawn:
    """Draw the same share of all rows; the number of rows in a period shrinks alike."""
    share, period = request.rows * MAX_PERIODS / rows, request.period
    number, _, unit = period.partition(" ")
    if unit in ("rows", "row") and number.isdecimal():
        period = f"{round(int(number) * share)} rows"
        if int(number) * share < 50:
            raise UserError(
                f"period '{request.period}' cuts {rows:,} rows into {rows // int(number):,} periods: choose at "
                f"least {round(50 / share):,} rows, a period of the calendar, or more --rows"
            )
    drawn = _read(table, chosen, request, f"{_hash(request)} < {share}")
    note = (
        f"{len(drawn):,} of {rows:,} rows were read, {100 * share:.3g}% drawn by a hash of the row's number; periods "
        "of equal numbers of rows, the kinds of columns and all warnings refer to these rows"
    )
    return Drawn(table.name, drawn, period, labeled, note)


def _hash(request: Request) -> str:
    """Return SQL for a number between 0 and 1 that depends on the row's file and number alone."""
    return f"hash({', '.join(map(quoted, ROW))}, {request.seed}) / {float(HASH_VALUES)}"


def _moment(table: SqlTable, request: Request, kind: str) -> str | None:
    """Return SQL for the time of a row as a moment; None if it has numbers or texts that DuckDB cannot read."""
    time = quoted(request.time)
    if request.own_times:
        return None
    if kind.startswith(("TIMESTAMP", "DATE")):
        return f"{time}::timestamp"
    if kind != "VARCHAR":
        return None
    moment = f"try_cast({time} as timestamp)"
    unread = table.rows(f"select count(*) from {{rows}} where {time} is not null and {moment} is null")
    return moment if unread[0][0] == 0 else None


def _shares(table: SqlTable, request: Request, moment: str, rows: int) -> tuple[str, pd.DataFrame | None]:
    """Return the period and, if it is one of the calendar, the share of rows to draw by day."""
    sql = f"select date_trunc('day', {moment}) as day, count(*) as n from {{rows}} group by 1 order by 1"
    days = table.arrow(sql).to_pandas().dropna()
    when = days["day"].to_numpy("datetime64[us]")
    period = choose_cut(when, rows, CALENDAR) if request.period == "auto" else request.period
    if period not in CALENDAR:
        return period, None
    labels = pd.Series(period_labels(when, period))
    sizes = days["n"].groupby(labels.to_numpy()).transform("sum").to_numpy()
    return period, pd.DataFrame({"day": when, "share": np.minimum(1.0, request.rows / sizes)})


def _read(table: SqlTable, columns: Sequence[str], request: Request, condition: str, joined: str = "") -> pd.DataFrame:
    """Return columns of the rows for which a condition holds, in the order of the table."""
    names = ", ".join(f"source.{quoted(name)}" for name in [*ROW, *columns])
    found = table.arrow(f"select {names} from {{rows}} source {joined} where {condition}")
    found = found.sort_by([(name, "ascending") for name in ROW]).drop_columns(list(ROW))
    if table.dialect is None:
        return arrow_to_frame(found)
    with TemporaryDirectory(prefix="driftline-") as folder:  # the one reader of CSV files makes numbers of texts
        path = Path(folder) / "rows.csv"
        found.to_pandas().to_csv(path, index=False)
        return read_file(path, table.dialect)
