"""SQL over tables in memory and Parquet files, without access to the disk.

DuckDB has no file system: pyarrow reads the files, there is no folder for temporary files (which queries could read and
write), no extension is loaded, and the configuration is locked. So no statement can read or write another file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from driftline.errors import MissingExtra, UserError
from driftline.record.index_part import columns_of

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
    files: Mapping[str, Sequence[Path]],
    indexed: Mapping[str, Sequence[Run]] | None = None,
) -> pd.DataFrame:
    """Return the rows of one SELECT; tables of `files` also have a column `run`, the name of the file's folder.

    `indexed`: further runs of these tables, which a store's index holds.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingExtra("a query", "query") from None

    database = duckdb.connect()
    for name, frame in frames.items():
        database.register(name, frame)
    for name, paths in files.items():
        _create_view(database, name, paths, (indexed or {}).get(name, ()))
    database.execute(SANDBOX)
    try:
        check_single_select(database, sql)
        return database.execute(sql).df()
    except duckdb.Error as error:
        raise UserError(f"{str(error).splitlines()[0]}. Tables: {', '.join((*frames, *files))}") from error


def _create_view(database: duckdb.DuckDBPyConnection, name: str, paths: Sequence[Path], indexed: Sequence[Run]) -> None:
    """Create a view of a table: its rows in the index of the store, and those in files."""
    alike: dict[Hashable, dict[IndexPart, None]] = defaultdict(dict)
    live = [(run.entry["signature"], run.folder.name) for run in indexed if run.entry]
    for entry in (run.entry for run in indexed if run.entry):
        alike[columns_of(entry.part.schema)][entry.part] = None
    columns = {"signature": [one for one, _ in live], "run": [run for _, run in live]}
    selects = []
    if live:
        database.register(f"{name}_in_index", pa.table(columns))
    for k, parts in enumerate(alike.values()):
        if name in next(iter(parts)).schemas:
            database.register(f"{name}_part_{k}", ds.dataset([part.dataset() for part in parts]))
            rows = f"unnest({name}_part_{k}.{name}, recursive := true), run"
            selects.append(f"select {rows} from {name}_part_{k} join {name}_in_index using (signature)")
    if paths:
        database.register(f"{name}_in_files", parquet_dataset(paths))
        selects.append(f"select * from {name}_in_files")
    database.execute(f"create view {name} as {' union all by name '.join(selects) or NO_ROWS}")


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
        raise UserError("a query is a single SELECT; the store is never changed by one")


def parquet_dataset(paths: Sequence[Path]) -> ds.Dataset:
    """Return Parquet files of runs as one table; a column that a file lacks is null there."""
    schema = pa.unify_schemas([pq.read_schema(path) for path in paths], promote_options="permissive")
    kind, disk = ds.ParquetFileFormat(), LocalFileSystem()
    parts = [kind.make_fragment(str(path), disk, ds.field("run") == path.parent.name) for path in paths]
    return ds.FileSystemDataset(parts, schema.append(pa.field("run", pa.string())), kind, disk)
