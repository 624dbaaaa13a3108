"""The tables of several runs as one frame."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from driftline.record.views import INDEXED

if TYPE_CHECKING:
    from driftline.record.index_part import IndexPart
    from driftline.record.run import Run

PLACE = "place of the run"


def runs_frame(runs: Sequence[Run], name: str) -> pd.DataFrame:
    """Return a table of all runs in their order, with columns for run, method and seed before its own.

    Tables with the same columns are converted together, which is much faster.
    """
    alike: list[list[pa.Table]] = []
    for table in _tables(runs, name):
        same = next((group for group in alike if group[0].schema == table.schema), None)
        if same is None:
            alike.append([table])
        else:
            same.append(table)
    if not alike:
        return pd.DataFrame(columns=["run", "method", "seed"])
    frames = [pa.concat_tables(group).to_pandas() for group in alike]
    frame: pd.DataFrame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    place = frame.pop(PLACE).to_numpy()
    if (place[1:] >= place[:-1]).all():
        return frame
    return frame.take(np.argsort(place, kind="stable")).reset_index(drop=True)


def _tables(runs: Sequence[Run], name: str) -> Iterator[pa.Table]:
    """Yield the tables of runs, those of a part of the index together."""
    about = _about(runs)
    indexed: dict[IndexPart, list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        if run.entry and name in INDEXED:
            indexed[run.entry.part].append(place)
        elif (rows := run.rows_of(name)) is not None:
            yield _with_run(rows, np.full(len(rows), place), about)
    for part, places in indexed.items():
        found = part.table(name, [entry.row for place in places if (entry := runs[place].entry)])
        if found is not None:
            rows, counts = found
            yield _with_run(rows, np.repeat(places, counts), about)


def _about(runs: Sequence[Run]) -> dict[str, pa.Array]:
    return {
        "run": pa.array([run.key for run in runs], pa.string()),
        "method": pa.array([run.method for run in runs], pa.string()),
        "seed": pa.array([run.seed for run in runs], pa.int64()),
    }


def _with_run(table: pa.Table, places: np.ndarray, about: dict[str, pa.Array]) -> pa.Table:
    """Return a table with columns for the place of the run, run, method and seed before its own."""
    at = pa.array(places)
    front = {PLACE: at, **{name: column.take(at) for name, column in about.items()}}
    return pa.Table.from_arrays([*front.values(), *table.columns], [*front, *table.column_names])
