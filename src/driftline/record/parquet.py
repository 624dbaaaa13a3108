"""Parquet files of rows: written in row groups of a fixed size, every page with its CRC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.errors import DamagedFile
from driftline.io.atomic import write_then_rename

ROW_GROUP_SIZE = 1 << 17  # rows per Parquet row group: fixed, so that files do not depend on how a run was interrupted


def write_rows(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write tables to one Parquet file, in row groups of a fixed size; without rows, write no file."""
    groups = _regroup(tables)
    first = next(groups, None)
    if first is None:
        return
    options = {"compression": "zstd", "use_dictionary": _dictionary_columns(first.schema), "write_page_checksum": True}
    with write_then_rename(path) as temporary, pq.ParquetWriter(temporary, first.schema, **options) as writer:
        writer.write_table(first, row_group_size=ROW_GROUP_SIZE)
        for group in groups:
            writer.write_table(group, row_group_size=ROW_GROUP_SIZE)


def read_rows(path: Path) -> pa.Table:
    """Read a Parquet file; a page whose CRC differs raises. Raise DamagedFile if the file cannot be read."""
    try:
        source = pa.BufferReader(path.read_bytes())  # for a small file, faster than seeking in it
    except OSError as error:  # removed since it was verified
        raise DamagedFile(path, str(error.strerror)) from error
    with pq.ParquetFile(source, page_checksum_verification=True) as file:
        return file.read(use_threads=file.num_row_groups > 1)  # starting threads takes longer than reading a few rows


def _dictionary_columns(schema: pa.Schema) -> list[str]:
    """Return the columns to encode as dictionaries; for scores, a dictionary takes more time and space."""
    return [field.name for field in schema if not (pa.types.is_floating(field.type) or pa.types.is_list(field.type))]


def _regroup(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        if sum(part.num_rows for part in pending) >= ROW_GROUP_SIZE:
            joined = pa.concat_tables(pending).combine_chunks()
            n_full = joined.num_rows // ROW_GROUP_SIZE * ROW_GROUP_SIZE
            yield from (joined.slice(start, ROW_GROUP_SIZE) for start in range(0, n_full, ROW_GROUP_SIZE))
            pending = [joined.slice(n_full)]
    if sum(part.num_rows for part in pending):
        yield pa.concat_tables(pending).combine_chunks()


def top_k(scores: np.ndarray, k_max: int) -> np.ndarray:
    """Return the indices of the highest scores of each row, best first; ties go to the lower index.

    >>> top_k(np.array([[0.1, 0.4, 0.4, 0.1]]), 3).tolist()
    [[1, 2, 0]]
    """
    top = np.empty((len(scores), min(k_max, scores.shape[1])), int)
    for start in range(0, len(scores), 64):  # 64 rows at a time stay in the cache
        remaining = scores[start : start + 64].copy()
        remaining[np.isnan(remaining)] = -np.inf
        rows, best = np.arange(len(remaining)), top[start : start + 64]
        for k in range(top.shape[1]):  # with 1,000 classes, five passes are ten times faster than sorting
            best[:, k] = remaining.argmax(axis=1)
            remaining[rows, best[:, k]] = -np.inf
    return top


def list_column(rows: np.ndarray) -> pa.Array:
    """Return a matrix as a column with one list per row."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(rows.ravel()))
