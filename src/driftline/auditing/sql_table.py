"""Tables for DuckDB: CSV and Parquet files, folders and globs of them, URLs, databases and queries.

A table is a SELECT with two more columns, the file and the number of the row in it, by which rows are drawn: the same
ones however many threads read, and in a resumed audit. Nothing is ever written: databases are attached read-only, and a
query is a single SELECT. A query of a database, and a view in it, reads nothing but that database.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from driftline.data.formats.dialect import HEAD_BYTES, Dialect, recognize
from driftline.data.formats.table_file import file_format
from driftline.errors import MissingExtra, UserError
from driftline.io import bounded_files
from driftline.io.locate import file_errors

if TYPE_CHECKING:
    import duckdb
    import pyarrow

MEMORY = "1GB"  # that DuckDB may use; it writes more to a temporary folder
ROW = ("driftline file", "driftline row")  # the additional columns
DATABASES = (".duckdb", ".ddb", ".db")
ENCODINGS = {"utf-8-sig": "utf-8", "utf8": "utf-8", "utf-16-le": "utf-16", "iso-8859-1": "latin-1", "latin1": "latin-1"}


@dataclass(frozen=True)
class SqlTable:
    """A table that an open connection reads."""

    connection: duckdb.DuckDBPyConnection
    name: str
    select: str
    """A SELECT of all columns and `ROW`."""
    dialect: Dialect | None = None
    """How the files are written, if all columns are texts of CSV files."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in which `{rows}` stands for the table."""
        with self._errors():
            return self.connection.sql(self._query(sql)).fetchall()

    def arrow(self, sql: str) -> pyarrow.Table:
        """Return the rows of a query in which `{rows}` stands for the table, as an Arrow table."""
        with self._errors():
            return self.connection.sql(self._query(sql)).to_arrow_table()

    def _query(self, sql: str) -> str:
        return sql.replace("{rows}", f"({self.select})")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            raise UserError(f"cannot read {self.name}: {str(error).splitlines()[0]}") from error

    def types(self) -> dict[str, str]:
        """Return the type of each column."""
        rows = self.rows("describe select * from {rows}")
        return {row[0]: row[1] for row in rows if row[0] not in ROW}


def quoted(name: str) -> str:
    """Return a column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def is_many(source: str) -> bool:
    """Return whether a path names something else than one local file: a folder, a glob, a URL or a database."""
    return "://" in source or glob.has_magic(source) or os.path.isdir(source) or source.lower().endswith(DATABASES)


@contextmanager
def open_table(source: str | None, sql: str | None, dialect: Dialect, threads: int = 2) -> Iterator[SqlTable]:
    """Open a table for as long as the context lasts; `sql`: a query, of the database `source` if that is given."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtra("reading this table", "query") from None
    with TemporaryDirectory(prefix="driftline-") as folder, duckdb.connect() as connection:
        connection.execute(f"set memory_limit = '{MEMORY}'; set threads = {threads}; set TimeZone = 'UTC'")
        connection.execute("set python_enable_replacements = false; set autoinstall_known_extensions = false")
        connection.execute("set temp_directory = ?", [folder])
        if sql is not None or str(source).lower().endswith(DATABASES):
            yield _queried(connection, source, sql)
        else:
            yield _files(connection, str(source), dialect)


def _queried(connection: duckdb.DuckDBPyConnection, source: str | None, sql: str | None) -> SqlTable:
    import duckdb

    from driftline.store.query import check_single_select

    if source is not None:
        if not os.path.isfile(source):
            raise UserError(f"there is no database {source}")
        try:
            connection.execute(f"attach '{_escaped(source)}' as source (read_only); use source")
            connection.execute("set enable_external_access = false; set lock_configuration = true")
        except duckdb.Error as error:
            raise UserError(f"cannot read {source}: expected a DuckDB file. {str(error).splitlines()[0]}") from None
    if sql is None:
        found = "select table_name from information_schema.tables where table_catalog = 'source' order by 1"
        names = [row[0] for row in connection.execute(found).fetchall()]
        if len(names) != 1:
            listed = ", ".join(names) or "no table"
            raise UserError(f'{source} has {listed}: choose what to audit with --sql "select * from ..."')
        sql = f"select * from {quoted(names[0])}"
    try:
        check_single_select(connection, sql)
    except duckdb.Error as error:
        raise UserError(f"--sql: {str(error).splitlines()[0]}") from None
    name = "the query" if source is None else Path(source).name
    return SqlTable(connection, name, _numbered(f"({sql.strip().rstrip(';')})"))


def _files(connection: duckdb.DuckDBPyConnection, source: str, dialect: Dialect) -> SqlTable:
    """Return CSV or Parquet files as one table; a column that a file lacks is missing there."""
    files, head = _listed(connection, source)
    forms = {file_format(file) for file in files}
    if not files or None in forms or len({form == ".parquet" for form in forms}) > 1:
        found = "nothing" if not files else "files of other or of both kinds"
        raise UserError(f"cannot read {source}: expected Parquet files or CSV files there, but found {found}")
    texts = ", ".join(f"'{_escaped(file)}'" for file in files)
    name = os.path.basename(source.rstrip("/")) or source
    if forms == {".parquet"}:
        if dialect != Dialect():
            raise UserError(f"sep, encoding and decimal are for CSV files, and {source} is Parquet: leave them out")
        read = f"read_parquet([{texts}], union_by_name = true, filename = true, file_row_number = true)"
        file = f"substr(filename, {len(os.path.commonpath(files)) + 1})"  # alike wherever the folder lies
        select = f"select * exclude (filename, file_row_number), {file} as {quoted(ROW[0])}"
        return SqlTable(connection, name, f"{select}, file_row_number as {quoted(ROW[1])} from {read}")
    with file_errors(Path(files[0]), "a CSV file"):
        recognized = recognize(head(files[0]), dialect)
    encoding = ENCODINGS.get(str(recognized.encoding).lower(), recognized.encoding)
    read = (
        f"read_csv([{texts}], all_varchar = true, header = true, delim = '{_escaped(str(recognized.sep))}', "
        f"quote = '\"', encoding = '{encoding}', union_by_name = {str(len(files) > 1).lower()})"
    )
    return SqlTable(connection, name, _numbered(read), Dialect(",", "utf-8", recognized.decimal))


def _numbered(read: str) -> str:
    return f"select *, '' as {quoted(ROW[0])}, row_number() over () as {quoted(ROW[1])} from {read}"


def _listed(connection: duckdb.DuckDBPyConnection, source: str) -> tuple[list[str], Callable[[str], bytes]]:
    """Return the files of a path, folder, glob or URL, and a function that reads the beginning of one."""
    if "://" not in source:
        if os.path.isdir(source):
            inside = sorted(str(path) for path in Path(source).rglob("*") if path.is_file())
            return [file for file in inside if file_format(file)], _head
        found = glob.glob(source, recursive=True) if glob.has_magic(source) else [source]
        return sorted(filter(os.path.isfile, found)), _head
    try:
        import fsspec
    except ModuleNotFoundError:
        raise MissingExtra(f"reading {source}", "remote") from None
    try:
        disk, path = fsspec.core.url_to_fs(source)
        connection.register_filesystem(disk)
        inside = disk.glob(path) if glob.has_magic(path) else disk.find(path) if disk.isdir(path) else [path]
        files = sorted(disk.unstrip_protocol(file) for file in inside if file_format(file) or len(inside) == 1)
        if not all(disk.exists(file) for file in files[:1]):
            raise FileNotFoundError("there is no such file")
    except (OSError, ImportError, ValueError) as error:
        raise UserError(f"cannot read {source}: {error}") from error

    def head(file: str) -> bytes:
        with fsspec.open(file, "rb", compression="infer") as start:
            return bytes(start.read(HEAD_BYTES))

    return files, head


def _head(file: str) -> bytes:
    with bounded_files.open_file(Path(file)) as start:
        return start.read(HEAD_BYTES)


def _escaped(text: str) -> str:
    return text.replace("'", "''")
