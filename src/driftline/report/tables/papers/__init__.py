"""The tables of papers in their own layout, with our numbers and under them the printed ones.

A layout is a function from groups of runs to grids, named after its benchmark and the table's number. Where runs differ
in more than a table shows, there is a table for each kind.
"""

from __future__ import annotations

from driftline.errors import unknown
from driftline.record import Record
from driftline.report.analysis.groups import newest
from driftline.report.tables.paper_grid import Grid
from driftline.report.tables.papers import (
    open_world,
    open_world_sequences,
    refinement,
    seq_to_final,
    test_time,
    timeline,
)
from driftline.report.tables.papers.base import Layout
from driftline.report.tables.papers.seq_to_final import BOTTOM, TOP, VARIANTS

__all__ = ["BOTTOM", "LAYOUTS", "TOP", "VARIANTS", "layout"]

LAYOUTS: dict[str, Layout] = {
    **timeline.LAYOUTS,
    **seq_to_final.LAYOUTS,
    **refinement.LAYOUTS,
    **test_time.LAYOUTS,
    **open_world.LAYOUTS,
    **open_world_sequences.LAYOUTS,
}


def layout(record: Record, name: str) -> tuple[Grid, ...]:
    """The tables of this name from a record's runs."""
    if name not in LAYOUTS:
        raise unknown("layout", name, LAYOUTS)
    benchmark = name.partition("/")[0]
    return tuple(LAYOUTS[name]([g for g in newest(record) if g.card["run"]["benchmark"] == benchmark]))
