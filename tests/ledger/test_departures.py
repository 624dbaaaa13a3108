"""docs/departures.md is whole, and the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    line.split(" | ") for line in (ROOT / "docs" / "departures.md").read_text().splitlines() if line.startswith("| ")
]
DEPARTURES = [row for row in ROWS if re.fullmatch(r"\| [A-Z]\d+", row[0])]


def test_each_departure_has_a_number_and_all_columns() -> None:
    assert len(DEPARTURES) >= 80
    numbers = [row[0] for row in DEPARTURES]
    assert len(set(numbers)) == len(numbers)
    assert {len(row) for row in DEPARTURES} == {6}


def test_the_tests_that_show_them_exist() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", "\n".join(row[-1] for row in DEPARTURES))
    assert len(named) > 50
    assert [name for name in named if f"def {name}(" not in sources] == []
