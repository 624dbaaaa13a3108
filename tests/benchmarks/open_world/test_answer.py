"""The sentence of open-world on a report's front page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from driftline.benchmarks.answer import Evidence
from driftline.benchmarks.open_world.answer import answer


def results(**changes: Any) -> Evidence:
    """Three methods that learn and one that never does; the best has by far the most compute."""
    values = {"ranpac": [0.7, 0.9], "ncm": [0.5, 0.8], "er": [0.6, 0.85], "lame": [0.2, 0.2]}
    cells = {
        name: SimpleNamespace(value=sum(v) / 2, low=0.1, high=0.9, n=600, seeds=2, interval="seeds", unit="examples")
        for name, v in values.items()
    }
    parts = {
        "roles": dict.fromkeys(values, "method"),
        "ranked": sorted(values),
        "uses_labels": frozenset(values) - {"lame"},
        "gmac": {"ranpac": 260.4, "ncm": 0.0213, "er": 4.0, "lame": 0.001},
        "scores": lambda metric, stat: cells if metric == "overall" else {},
        "by_seed": lambda metric, stat: {name: dict(enumerate(v)) for name, v in values.items()},
    }
    made: Any = SimpleNamespace(**{**parts, **changes})
    return made


def test_the_price_is_that_over_the_cheapest_method_that_learns() -> None:
    found = answer(results())
    assert found is not None
    assert found.text == "Nothing beats ranpac, at 12,000 times the compute of ncm."
    assert "at 260 GMAC" in found.numbers[0].detail


def test_the_best_may_be_the_cheapest() -> None:
    found = answer(results(gmac={"ranpac": 0.01, "ncm": 0.02, "lame": 0.001}))
    assert found is not None
    assert found.text.endswith(", and nothing that learns is cheaper.")
