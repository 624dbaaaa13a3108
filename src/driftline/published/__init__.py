"""Numbers that papers printed, to stand beside ours. They are facts about other people's runs, not targets.

Wild-Time's Tables 1 and 2 (Eval-Fix) and the temporal-metrics paper's Tables 1 and 2; shares as fractions. The
latter are indicative only: the paper has no code, does not state epsilon, and its row counts do not agree.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Published:
    """One printed number."""

    benchmark: str
    data: str
    protocol: str
    method: str
    metric: str
    stat: str
    value: float
    source: str


@cache
def _all() -> tuple[Published, ...]:
    tables = {path.name: path for path in files(__name__).iterdir() if path.name.endswith(".csv")}
    rows = [row for _, table in sorted(tables.items()) for row in csv.DictReader(table.read_text().splitlines())]
    return tuple(Published(**{**row, "value": float(row["value"])}) for row in rows)  # type: ignore[arg-type]


def numbers(benchmark: str, data: str, protocol: str) -> list[Published]:
    """What was printed for a dataset under a protocol.

    >>> [n.value for n in numbers("timeline", "yearbook", "Eval-Fix") if (n.method, n.metric) == ("ft", "fix-ood")]
    [0.8198]
    """
    return [n for n in _all() if (n.benchmark, n.data, n.protocol) == (benchmark, data, protocol)]
