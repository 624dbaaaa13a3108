"""Tables of papers in their own layout, with our numbers and below them the published ones.

A paper table is a function from groups of runs to tables, registered as `paper-table` under the name of its benchmark
and its number. Runs that differ in more than a table shows make several tables.
"""

from __future__ import annotations

from driftline import registry
from driftline.record.run import Record
from driftline.report.analysis.groups import newest
from driftline.report.tables.model import Table


def paper_tables(record: Record, name: str) -> list[Table]:
    """Return the tables of this name from the runs of a record."""
    build = registry.get("paper-table", name)
    benchmark = name.partition("/")[0]
    tables: list[Table] = build([group for group in newest(record) if group.benchmark == benchmark])
    return tables
