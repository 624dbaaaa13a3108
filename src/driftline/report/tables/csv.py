"""Tables as CSV, one line per number."""

from __future__ import annotations

from collections.abc import Sequence

from driftline.io.sanitize import CsvWriter
from driftline.report.tables.model import Table


def write(tables: Sequence[Table]) -> str:
    """Return tables as CSV; all have the same columns."""
    records = [record for table in tables for record in table.csv_records()]
    text = CsvWriter()
    for line in ([*records[0]] if records else [], *(record.values() for record in records)):
        text.writerow(line)
    return str(text)
