"""The README's query asks for the number that the report shows."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_query_does_not_average_single_times_with_their_summaries() -> None:
    (query,) = re.findall(r'driftline query "(select [^"]+)"', README.read_text(encoding="utf-8"))
    assert "metric = 'tas' and stat = 'mean'" in query
