"""The table of docs/performance.md: benches add their measures to performance.csv, and the page is made from it.

    python bench/performance.py    # write the page again

A measure is paired with a peer or a limit. Times are seconds of the processors, which depend less on what else the
machine does; the load is that when the bench began.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

FILE = Path(__file__).with_name("performance.csv")
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
INTRODUCTION = """# Performance

Written by the benches in `bench/`; `bench/performance.csv` has the same numbers. *Ratio* is ours over the peer or the
limit: below 1 is better. *Spread* is from the smallest to the largest of the rounds, of which *ours* is the median.
Times are CPU seconds. *Load* is the load average of a machine with 2 cores: far above 2, processes take caches from
each other, and CPU seconds grow too.

| measure | ours | peer or limit | ratio | spread | load | bench |
|:--|--:|--:|--:|--:|--:|:--|
"""


@dataclass(frozen=True)
class Measure:
    """One row of the table."""

    measure: str
    unit: str
    ours: float
    against: float
    """The same of a peer, or the limit that we set ourselves."""
    what: str
    """What it is measured against: limit, or the name of a peer."""
    low: float
    high: float
    load: float
    bench: str


def measured(name: str, unit: str, rounds: Iterable[float], against: float, bench: str, what: str = "limit") -> Measure:
    """Return the median of several rounds as a row."""
    values = sorted(rounds)
    ours = values[len(values) // 2]
    return Measure(name, unit, ours, against, what, values[0], values[-1], os.getloadavg()[0], bench)


def add(measures: Iterable[Measure]) -> None:
    """Add rows to the CSV file, in place of earlier ones of the same name, and write the page."""
    rows = {row.measure: row for row in (*read(), *measures)}
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Measure)], lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _text(v) for k, v in asdict(row).items()} for row in rows.values())
    PAGE.write_text(page(read()), encoding="utf-8")


def read() -> list[Measure]:
    """Return the rows of the CSV file."""
    if not FILE.exists():
        return []
    numbers = {field.name for field in fields(Measure) if field.type == "float"}
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Measure(**{k: float(v) if k in numbers else v for k, v in row.items()}) for row in rows]  # type: ignore[arg-type]


def page(rows: Iterable[Measure]) -> str:
    """Return the page."""
    return INTRODUCTION + "".join(map(_line, rows))


def _line(row: Measure) -> str:
    against = f"{_text(row.against)} ({row.what})"
    cells = (f"{_text(row.ours)} {row.unit}", against, f"{row.ours / row.against:.2f}")
    ends = (f"{_text(row.low)} to {_text(row.high)}", f"{row.load:.1f}", f"`{row.bench}`")
    return f"| {' | '.join((row.measure, *cells, *ends))} |\n"


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page(read()), encoding="utf-8")
