"""The numbers with intervals in the README and the pages of the benchmarks are those of the committed results."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from driftline import registry
from driftline.ledger.results import read_results
from driftline.report.analysis.aggregate import ANY
from driftline.report.analysis.estimates import bounds, estimates_by_method

ROOT = Path(__file__).parents[2]
NUMBER = r"(-?\d+(?:\.\d+)?)"
INTERVAL = re.compile(rf"{NUMBER}[*%]*\s\[{NUMBER},\s{NUMBER}\]")
HALF_WIDTH = re.compile(rf"{NUMBER} ± {NUMBER}")
PAGES: dict[str, set[str]] = {
    "README.md": set(),
    "docs/timeline.md": {"Results in miniature"},
    "docs/seq-to-final.md": set(),
    "docs/refinement.md": set(),
    "docs/test-time.md": {
        "Results",
        "Does anything collapse at CIFAR scale?",
        "ImageNet, small scale",
        "Correlated labels in miniature",
    },
    "docs/open-world.md": set(),
}
"""The pages, and their sections whose numbers are in no result; these say so."""
WITHOUT = "not among the committed results"
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@cache
def committed() -> tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]:
    """Return the means with their intervals, and with the half-widths of these, as they are printed."""
    intervals, half_widths = set(), set()
    for result in read_results(ROOT / "results").values():
        for (_, metric, _), rows in result.scores.groupby(["setting", "metric", "stat"]):
            within = bounds(metric) if metric in registry.names("metric") else ANY
            for one in estimates_by_method(rows, within).values():
                for factor, digits in ((100, 1), (1, 2)):
                    numbers = (one.value, one.low, one.high, (one.high - one.low) / 2)
                    mean, low, high, half = (f"{factor * number:.{digits}f}" for number in numbers)
                    intervals.add((mean, low, high))
                    half_widths.add((mean, half))
    return frozenset(intervals), frozenset(half_widths)


def sections(page: str) -> list[tuple[str, str]]:
    """Return the headings of a page and the text below each, up to the next one."""
    text = CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


@pytest.mark.parametrize("page", PAGES)
def test_numbers_with_intervals_are_in_the_results(page: str) -> None:
    intervals, half_widths = committed()
    assert {heading for heading, text in sections(page) if WITHOUT in " ".join(text.split())} == PAGES[page]
    for heading, text in sections(page):
        if heading not in PAGES[page]:
            text = text.replace("−", "-")
            assert [found for found in INTERVAL.findall(text) if found not in intervals] == [], heading
            assert [found for found in HALF_WIDTH.findall(text) if found not in half_widths] == [], heading
