"""The catalog: every table and figure of the papers, what it is compared with, and the findings that it supports.

One YAML file per paper in the folder `catalog`. A test of a finding is `A > B`, `A < B` or `A = B`, where A is a method
and B a method or a number; `METHOD@METRIC:STAT` replaces the finding's metric, and `margin` moves the limit from 0.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from driftline.io import safe_yaml

Scale = Literal["own", "smaller", "substitute"]
SCALES: dict[Scale, str] = {
    "own": "the paper's own scale",
    "smaller": "the paper's data at smaller scale",
    "substitute": "other data",
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Comparison(_Part):
    """Numbers of a result; with a source, those that the paper printed for the same method and metric."""

    result: str
    scale: Scale
    source: str = ""
    """The source in the published numbers: the name of the paper and the table."""
    data: str = ""
    protocol: str = ""
    model: str = ""
    """These three select among the numbers of a source."""
    setting: str = ""
    """A part of the name of the result's setting, if it has several."""
    metrics: tuple[str, ...]
    """METRIC:STAT."""
    methods: tuple[str, ...] = ()
    """Names in the result. [default: all that were printed; without a source, all]"""
    counterparts: dict[str, str] = {}
    """Our method for a printed one, where more differs than settings that are not printed."""
    instead: dict[str, str] = {}
    """Our METRIC:STAT for a printed one, where the names differ."""


class Finding(_Part):
    """A sentence of a paper, and the tests that decide it."""

    text: str
    result: str
    metric: str
    tests: tuple[str, ...]
    margin: float = 0.0
    setting: str = ""
    other_setting: str = ""
    """The setting of B, if it is another."""


class Item(_Part):
    """A table or figure."""

    id: str
    shows: str
    printed: int = 0
    """Number of printed numbers."""
    status: Literal["", "drawn", "not feasible", "nothing to run"] = ""
    """drawn: a picture without numbers, which was drawn with the command in the reason."""
    reason: str
    """Why our numbers differ, or why there are none."""
    cost: str = ""
    """CPU time of the largest scale that fits, if it was not run."""
    comparisons: tuple[Comparison, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def kind(self) -> str:
        return "table" if self.id.partition("-")[2].startswith("T") else "figure"

    @model_validator(mode="after")
    def _check(self) -> Item:
        if self.status and self.comparisons:
            raise ValueError(f"{self.id} is {self.status} and has comparisons")
        return self


class Paper(_Part):
    """A paper with its tables and figures."""

    name: str
    order: int
    items: tuple[Item, ...]


@cache
def papers() -> tuple[Paper, ...]:
    """Return all papers, in the order of the ledger."""
    folder = files("driftline.ledger") / "catalog"
    texts = [path.read_text(encoding="utf-8") for path in folder.iterdir() if path.name.endswith(".yaml")]
    return tuple(sorted((Paper.model_validate(safe_yaml.load(text)) for text in texts), key=lambda paper: paper.order))
