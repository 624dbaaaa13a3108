"""Parquet files of rows: written in row groups of a fixed size, every page with its CRC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftline.atomic import replacing

GROUP = 1 << 17  # rows per Parquet row group: fixed, so that files do not depend on how a run was interrupted


def write_rows(path: Path, tables: Iterable[pa.Table]) -> None:
    """One Parquet file from many tables, in row groups of a fixed size; nothing is written for no rows."""
    groups = _regroup(tables)
    first = next(groups, None)
    if first is None:
        return
    options = {"compression": "zstd", "use_dictionary": _repeating(first.schema), "write_page_checksum": True}
    with replacing(path) as temporary, pq.ParquetWriter(temporary, first.schema, **options) as writer:
        writer.write_table(first, row_group_size=GROUP)
        for group in groups:
            writer.write_table(group, row_group_size=GROUP)


def read_rows(path: Path) -> pa.Table:
    """Read a Parquet file; a page whose CRC differs raises."""
    return pq.read_table(path, page_checksum_verification=True)


def _repeating(schema: pa.Schema) -> list[str]:
    """The columns whose values repeat: a dictionary of scores costs more time and room than the scores."""
    return [field.name for field in schema if not (pa.types.is_floating(field.type) or pa.types.is_list(field.type))]


def _regroup(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(part.num_rows for part in waiting) >= GROUP:
            joined = pa.concat_tables(waiting).combine_chunks()
            whole = joined.num_rows // GROUP * GROUP
            yield from (joined.slice(at, GROUP) for at in range(0, whole, GROUP))
            waiting = [joined.slice(whole)]
    if sum(part.num_rows for part in waiting):
        yield pa.concat_tables(waiting).combine_chunks()


def best_places(scores: np.ndarray, most: int) -> np.ndarray:
    """The places of the highest scores of each row, best first; of equal ones the first.

    >>> best_places(np.array([[0.1, 0.4, 0.4, 0.1]]), 3).tolist()
    [[1, 2, 0]]
    """
    found = np.empty((len(scores), min(most, scores.shape[1])), int)
    for start in range(0, len(scores), 64):  # 64 rows at a time stay in the cache
        left = scores[start : start + 64].copy()
        left[np.isnan(left)] = -np.inf
        rows, best = np.arange(len(left)), found[start : start + 64]
        for k in range(found.shape[1]):  # with a thousand classes, five looks are ten times faster than sorting
            best[:, k] = left.argmax(axis=1)
            left[rows, best[:, k]] = -np.inf
    return found


def lists(rows: np.ndarray) -> pa.Array:
    """A matrix as a column with one list per row."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(rows.ravel()))
