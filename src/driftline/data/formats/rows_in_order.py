"""Streams of table rows that have no time but their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from driftline.data.base import Dataset
from driftline.data.table import from_frame
from driftline.tasks import Classification

ROW = "row in order"


def rows_in_order(
    name: str,
    frame: pd.DataFrame,
    target: str,
    *,
    notes: tuple[str, ...] = (),
    task: Literal["auto", "classes", "number"] = "classes",
    columns: Mapping[str, str] | None = None,
    model: str = "mlp",
) -> Dataset:
    """Return the rows of a table as a stream; time is the number of a row.

    A note says how often the last label is right for the next row, because in a stream with correlated labels that is
    the accuracy to beat, and not the majority's.
    """
    timed = frame.assign(**{ROW: np.arange(len(frame))})
    read = from_frame(name, timed)((), time=ROW, target=target, task=task, columns={**(columns or {}), ROW: "number"})
    if isinstance(read.task, Classification):
        y = read.samples.y
        repeats, most = np.mean(y[1:] == y[:-1]), np.bincount(y).max() / len(y)
        notes = (
            *notes,
            f"repeating the last label is right for {repeats:.1%} of the rows, the majority for {most:.1%}",
        )
    return replace(read, name=name, notes=(*read.notes, *notes), model=model)
