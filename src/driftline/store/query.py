"""SQL over tables in memory and Parquet files, without access to the disk.

DuckDB has no file system: pyarrow reads the files, there is no folder for temporary files (which queries could read and
write), no extension is loaded, and the configuration is locked. So no statement can read or write another file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from driftline.errors import DamagedFile, MissingExtra, UserError

if TYPE_CHECKING:
    import duckdb

    from driftline.record.index_part import IndexPart
    from driftline.record.run import Run

NO_ROWS = "select ''::varchar as run where false"
SANDBOX = """
    set temp_directory = '';
    set autoinstall_known_extensions = false;
    set autoload_known_extensions = false;
    set enable_external_access = false;
    set python_enable_replacements = false;
    set lock_configuration = true;
"""


def select(
    sql: str,
    frames: Mapping[str, pd.DataFrame],
    files: Mapping[str, Sequence[tuple[Path, str]]],
    indexed: Mapping[str, Sequence[Run]] | None = None,
) -> pd.DataFrame:
    """Return the rows of one SELECT; tables of `files`, each with the key of its run, also have a column `run`.

    `indexed`: further runs of these tables, which a store's index holds.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtra("a query", "query") from None

    tables = [_Table(name, of_runs, (indexed or {}).get(name, ())) for name, of_runs in files.items()]
    try:
        used = _columns_used(sql, frames, tables)
        database = _database(frames, tables, lambda table: table.read(used))
        return database.execute(sql).df()
    except duckdb.Error as error:
        raise UserError(f"{str(error).splitlines()[0]}. Tables: {', '.join((*frames, *files))}") from error


@dataclass(frozen=True)
class _Table:
    """A table of runs: rows in the index of the store, and those in files."""

    name: str
    files: Sequence[tuple[Path, str]]
    indexed: Sequence[Run]

    @cached_property
    def rows(self) -> dict[IndexPart, list[int]]:
        """The rows of each part of the index."""
        rows: dict[IndexPart, list[int]] = defaultdict(list)
        for entry in (run.entry for run in self.indexed if run.entry):
            rows[entry.part].append(entry.row)
        return {part: sorted(live) for part, live in rows.items() if self.name in part.schemas}

    def read(self, used: Callable[[str], bool]) -> list[pa.Table]:
        """Return the used columns of the rows in the index."""
        found = []
        for part, rows in self.rows.items():
            names = part.schemas[self.name].names
            found.append(part.columns(self.name, [*filter(used, names)] or names[:1], rows))
        return found

    def without_rows(self) -> list[pa.Table]:
        """Return the columns alone."""
        return [part.schemas[self.name].append(pa.field("run", pa.string())).empty_table() for part in self.rows]


def _database(
    frames: Mapping[str, pd.DataFrame], tables: Sequence[_Table], indexed: Callable[[_Table], list[pa.Table]]
) -> duckdb.DuckDBPyConnection:
    """Return a locked database with these tables."""
    import duckdb

    database = duckdb.connect()
    for name, frame in frames.items():
        database.register(name, frame)
    for table in tables:
        parts = {f"{table.name}_part_{k}": part for k, part in enumerate(indexed(table))}
        if table.files:
            parts[f"{table.name}_in_files"] = parquet_dataset(table.files)
        for name, part in parts.items():
            database.register(name, part)
        selects = [f"select * from {name}" for name in parts]
        database.execute(f"create view {table.name} as {' union all by name '.join(selects) or NO_ROWS}")
    database.execute(SANDBOX)
    return database


def _columns_used(sql: str, frames: Mapping[str, pd.DataFrame], tables: Sequence[_Table]) -> Callable[[str], bool]:
    """Return whether a query may read a column of this name, according to DuckDB's plan for tables without rows."""
    import duckdb

    database = _database(frames, tables, _Table.without_rows)
    check_single_select(database, sql)
    if database.extract_statements(sql)[0].type != duckdb.StatementType.SELECT:
        return lambda name: True  # the columns of PIVOT depend on rows
    plan = database.execute(f"explain (format json) {sql}").fetchall()[0][1]
    words = set(re.findall(r"\w+", plan.lower()))
    return lambda name: not name.isidentifier() or name.lower() in words


def check_single_select(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse anything but a single SELECT, according to DuckDB's own parser."""
    import duckdb

    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"the query is not valid UTF-8 at character {error.start + 1}: correct it there") from None
    statements = database.extract_statements(sql)
    reading = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)  # the latter is PIVOT
    if not statements:
        raise UserError('there is no query; try "select method, count(*) from runs group by all"')
    if len(statements) > 1 or statements[0].type not in reading:
        raise UserError("a query must be a single SELECT: it cannot change the store")


def parquet_dataset(files: Sequence[tuple[Path, str]]) -> ds.Dataset:
    """Return Parquet files with the keys of their runs as one table; a column that a file lacks is null there."""
    schema = pa.unify_schemas([_schema(path) for path, _ in files], promote_options="permissive")
    kind, disk = ds.ParquetFileFormat(), LocalFileSystem()
    parts = [kind.make_fragment(str(path), disk, ds.field("run") == key) for path, key in files]
    return ds.FileSystemDataset(parts, schema.append(pa.field("run", pa.string())), kind, disk)


def _schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except OSError as error:  # another process removed the run since its files were verified
        raise DamagedFile(path, "it cannot be read") from error
