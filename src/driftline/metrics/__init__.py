"""Pure functions from arrays to numbers: numpy and scipy only, no torch, no files.

A metric is registered together with its formula, the direction that is better and an example input, so that
tables can print what a number means and `driftline.testing.check_metric` can check every one of them.
Where papers and their codes define a metric differently, each variant has its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from driftline import registry
from driftline.registry import register
from driftline.types import JsonObject

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Metric:
    """A metric with its name, formula, direction and unit."""

    name: str
    compute: Callable[..., object]
    formula: str
    better: Literal["higher", "lower"]
    unit: Literal["share", "steps", "macs"]
    paper: str
    example: Callable[[np.random.Generator], JsonObject]
    bounds: tuple[float, float] | None = None
    """Smallest and largest possible value, if known. Intervals end there, and a search uses them to stop early."""
    title: str = ""
    """Its name in tables and figures; by default its registered name, with spaces for hyphens."""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name.replace("-", " "))


def metric(
    name: str,
    *,
    formula: str,
    paper: str,
    example: Callable[[np.random.Generator], JsonObject],
    better: Literal["higher", "lower"] = "higher",
    unit: Literal["share", "steps", "macs"] = "share",
    bounds: tuple[float, float] | None = None,
    title: str = "",
) -> Callable[[F], F]:
    """Register a function as the metric `name`; the function itself is returned unchanged."""

    def decorate(compute: F) -> F:
        register("metric", name)(Metric(name, compute, formula, better, unit, paper, example, bounds, title))
        return compute

    return decorate


def title(name: str) -> str:
    """Return the title of a registered metric.

    >>> title("ood"), title("final-accuracy")
    ('accuracy later (OOD)', 'final accuracy')
    """
    return str(registry.get("metric", name).title)
