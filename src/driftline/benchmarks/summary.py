"""Sentences about results: the best method and its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from driftline import registry


class Number(Protocol):
    """A mean over seeds with its 95% interval, NaN if undefined."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


class Cell(Number, Protocol):
    """A number of a result table."""

    @property
    def seeds(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def unit(self) -> str: ...
    @property
    def false_alarm(self) -> float: ...


class Results(Protocol):
    """The result table of one benchmark."""

    @property
    def roles(self) -> Mapping[str, str]:
        """`Learner.role` of each method."""

    def scores(self, metric: str, stat: str) -> Mapping[str, Cell]:
        """Return one column: a cell for each method that has one."""

    def gains(self, metric: str, stat: str) -> Mapping[str, Number]:
        """Return the difference from the baseline, paired by seed, for each other method; empty without a baseline."""


def best_method(results: Results, primary: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]]) -> str:
    """Return the best method by the first primary metric that the results have, with its other numbers."""
    pair = next((pair for pair in primary if results.scores(*pair)), None)
    if pair is None:
        return "These runs have no scores for the headline metrics."
    cells = results.scores(*pair)
    fair = {name: cell for name, cell in cells.items() if results.roles[name] != "upper-bound"} or cells
    sign = 1 if registry.get("metric", pair[0]).better == "higher" else -1
    method, best = max(fair.items(), key=lambda item: sign * item[1].value)
    shown = {pair: best, **{other: results.scores(*other).get(method) for other in others}}
    numbers = [_described(metric, cell) for (metric, _), cell in shown.items() if cell]
    seeds = f"{best.seeds} seed{'' if best.seeds == 1 else 's'}"
    first = f"{method} is best" if len(fair) > 1 else method
    return f"{first}: {'; '.join(numbers)} ({seeds}, n = {best.n:,} {best.unit}; 95% intervals)."


def _described(metric: str, cell: Cell) -> str:
    """Return a number with the title of its metric, and the false-alarm rate of a horizon."""
    registered = registry.get("metric", metric)
    chance = "" if math.isnan(cell.false_alarm) else f", {cell.false_alarm:.0%} false alarms"
    return f"{number(cell, share=registered.unit == 'share')} {registered.title}{chance}"


def number(cell: Number, share: bool = True) -> str:
    """Return a number with its interval, shares in percent.

    >>> from types import SimpleNamespace
    >>> number(SimpleNamespace(value=0.701, low=0.605, high=0.796))
    '70.1% [60.5, 79.6]'
    """
    scale, digits = (100, 1) if share else (1, 2)
    unit = "%" if share else ""
    interval = f" [{scale * cell.low:.{digits}f}, {scale * cell.high:.{digits}f}]" if math.isfinite(cell.low) else ""
    return f"{scale * cell.value:.{digits}f}{unit}{interval}"


def points(gain: Number) -> str:
    """Return a difference of shares in percentage points.

    >>> from types import SimpleNamespace
    >>> points(SimpleNamespace(value=-0.125, low=-0.2, high=-0.05))
    '-12.5 points [-20.0, -5.0]'
    """
    interval = f" [{100 * gain.low:.1f}, {100 * gain.high:.1f}]" if math.isfinite(gain.low) else ""
    return f"{100 * gain.value:.1f} points{interval}"
