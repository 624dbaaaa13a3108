"""The answer of finished runs to a benchmark's question: a sentence, one or two numbers, and the chart that shows it.

A sentence says no more than its interval. "Beats" and "is worse than" need an interval that excludes 0; without one the
answer is "nothing beats" or "not certain yet".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from driftline import registry
from driftline.benchmarks.summary import Cell, Number
from driftline.metrics.significance import Difference, paired_t_test
from driftline.types import JsonObject

BySeed = Mapping[int, float]
Pair = tuple[str, str]
"""Metric and statistic."""
SPACE, MINUS = "\u00a0", "\u2212"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Evidence(Protocol):
    """What an answer may be made from: the results of comparable runs."""

    @property
    def roles(self) -> Mapping[str, str]:
        """`Learner.role` of each method."""

    @property
    def ranked(self) -> Sequence[str]:
        """The methods that know no more than the others, in order of name."""

    @property
    def uses_labels(self) -> frozenset[str]:
        """The methods that learn from labels; the others adapt to inputs alone, or never change."""

    @property
    def times(self) -> Sequence[str]:
        """Names of the periods or steps."""

    @property
    def gmac(self) -> Mapping[str, float]:
        """Compute of each method whose compute was counted."""

    @property
    def options(self) -> JsonObject:
        """Options of the benchmark."""

    @property
    def protocol(self) -> JsonObject:
        """The protocol on the card."""

    def scores(self, metric: str, stat: str) -> Mapping[str, Cell]:
        """Return one column: a cell for each method that has one."""

    def gains(self, metric: str, stat: str) -> Mapping[str, Number]:
        """Return the difference from the baseline, paired by seed, for each other method; empty without a baseline."""

    def by_seed(self, metric: str, stat: str) -> Mapping[str, BySeed]:
        """Return one column by method and seed."""

    def grid(self, metric: str, method: str) -> Mapping[tuple[str, str], BySeed]:
        """Return a metric of two times, such as accuracy A(t, tau), by seed."""


@dataclass(frozen=True)
class BigNumber:
    """A number with its unit and, in small print, its interval and what it is compared with."""

    text: str
    unit: str
    detail: str


@dataclass(frozen=True)
class OldAndNew:
    """Chart: the first model of a method at all times, against its own model of each time."""

    method: str
    metric: str
    unit: str
    gap_at: str | None = None
    """The time at which the difference is written."""


@dataclass(frozen=True)
class Dots:
    """Chart: one number per method with its interval, and a dashed line at the baseline."""

    column: Pair
    names: Mapping[str, str] = field(default_factory=dict)
    """Words for methods."""


@dataclass(frozen=True)
class Plane:
    """Chart: two numbers per method, each with its interval."""

    x: Pair
    y: Pair
    x_title: str


@dataclass(frozen=True)
class AlongStream:
    """Chart: a metric along the stream, the best method against the baseline, others in gray."""

    metric: str


@dataclass(frozen=True)
class Cost:
    """Chart: a metric against compute on a log axis, with the frontier."""

    column: Pair


Chart = OldAndNew | Dots | Plane | AlongStream | Cost


@dataclass(frozen=True)
class Answer:
    """An answer of at most 16 words, its numbers (the first one is for the front page) and its chart."""

    text: str
    numbers: tuple[BigNumber, ...]
    chart: Chart
    axis: str
    """Name and unit of the chart's y axis."""
    source: str
    """What the numbers are over, at most 30 words."""
    method: str = ""
    """The method that the answer is about."""
    certain: bool = True
    """Whether the interval behind the sentence excludes 0."""


def default_answer(results: Evidence, primary: Sequence[Pair]) -> Answer | None:
    """Return the best method by the first primary metric that the results have, against the baseline or the next."""
    pair = first_known(results, primary)
    if pair is None:
        return None
    cells, best = results.scores(*pair), best_method(results, pair)
    metric = registry.get("metric", pair[0])
    gain = results.gains(*pair).get(best)
    others = [name for name in results.ranked if name != best and name in cells]
    if gain is not None:
        text, certain = against_baseline(best, gain, metric.better)
    elif others:
        sign = 1 if metric.better == "higher" else -1
        values = results.by_seed(*pair)
        certain = all(sign * end(paired(values[best], values[name]), sign) > 0 for name in others)
        text = f"{best} beats every other method." if certain else f"Not certain yet; {best} has the best mean."
    else:
        text, certain = f"{best} alone was run: nothing to compare it with.", True
    share = metric.unit == "share"
    number = BigNumber(value_text(cells[best].value, share), "%" if share else "", interval(cells[best], share))
    axis = f"{metric.title[:1].upper()}{metric.title[1:]}{', %' if share else ''}"
    return Answer(text, (number,), Dots(pair), axis, source_line(cells[best]), best, certain)


def against_baseline(best: str, gain: Number, better: str = "higher") -> tuple[str, bool]:
    """Return the sentence about the best method and the baseline, and whether its interval excludes 0.

    >>> against_baseline("er", Difference(0.2, 0.1, 0.3, 3, 0.01))
    ('er beats the baseline.', True)
    >>> against_baseline("er", Difference(0.2, -0.1, 0.5, 3, 0.2))
    ('Not certain yet that er beats the baseline.', False)
    >>> against_baseline("er", Difference(-0.2, -0.5, 0.1, 3, 0.2))
    ('Nothing beats the baseline.', True)
    """
    sign = 1 if better == "higher" else -1
    if sign * end(gain, sign) > 0:
        return f"{best} beats the baseline.", True
    if sign * gain.value > 0:
        return f"Not certain yet that {best} beats the baseline.", False
    return "Nothing beats the baseline.", True


def first_known(results: Evidence, pairs: Sequence[Pair]) -> Pair | None:
    """Return the first of several columns that the results have."""
    return next((pair for pair in pairs if results.scores(*pair)), None)


def best_method(results: Evidence, pair: Pair, without_baseline: bool = True) -> str:
    """Return the best of the methods that compete; a baseline only if there is nothing else."""
    cells = results.scores(*pair)
    ranked = [name for name in results.ranked if name in cells] or list(cells)
    fair = [name for name in ranked if results.roles[name] != "baseline"] if without_baseline else ranked
    sign = 1 if registry.get("metric", pair[0]).better == "higher" else -1
    return max(fair or ranked, key=lambda name: sign * cells[name].value)


def baseline(results: Evidence) -> str | None:
    """Return the name of the baseline among the methods."""
    return next((name for name, role in results.roles.items() if role == "baseline"), None)


def paired(a: BySeed, b: BySeed) -> Difference:
    """Return the mean of a - b over common seeds with its interval."""
    return paired_t_test([a[seed] - b[seed] for seed in sorted(a) if seed in b])


def end(number: Number, sign: int = 1) -> float:
    """Return the end of an interval that is nearer to 0 for a gain of this sign; -inf or inf if there is none."""
    value = number.low if sign > 0 else number.high
    return -sign * math.inf if math.isnan(value) else value


def is_gain(number: Number) -> bool:
    """Return whether an interval lies above 0."""
    return end(number, 1) > 0


def is_loss(number: Number) -> bool:
    """Return whether an interval lies below 0."""
    return end(number, -1) < 0


def value_text(value: float, share: bool = True) -> str:
    """Return a number, shares in percent, with a true minus sign.

    >>> value_text(0.701), value_text(1.9153, share=False)
    ('70.1', '1.9')
    """
    return f"{100 * value if share else value:.1f}".replace("-", MINUS)


def gain_number(gain: Number, over: str) -> BigNumber:
    """Return a difference of shares in points, with its sign.

    >>> gain_number(Difference(-0.125, -0.2, -0.05, 3, 0.01), "over frozen").text
    '−12.5'
    """
    sign = "+" if gain.value > 0 else ""
    return BigNumber(f"{sign}{value_text(gain.value)}", "points", f"{interval(gain)} {over}".strip())


def interval(number: Number, share: bool = True) -> str:
    """Return `[low, high]`, or nothing if the number has no interval."""
    if not math.isfinite(number.low):
        return ""
    low, high = (value_text(value, share) for value in (number.low, number.high))
    return f"[{low},{SPACE}{high}]"


def about(value: float, unit: str) -> str:
    """Return a length of time in words.

    >>> about(1.9, "decade"), about(0.2, "period"), about(1.2, "step"), about(30.0, "year")
    ('About two decades', 'Less than one period', 'About one step', 'About 30 years')
    """
    whole = round(value)
    if whole == 0:
        return f"Less than one {unit}"
    return f"About {count(whole)} {unit}{'' if whole == 1 else 's'}"


def count(number: int) -> str:
    """Return a small count as a word."""
    return WORDS[number] if number < len(WORDS) else f"{number:,}"


def source_line(cell: Cell, what: str = "") -> str:
    """Return what a number is over: examples, seeds and the kind of interval."""
    seeds = f"{cell.seeds} seed{'' if cell.seeds == 1 else 's'}"
    kind = "95% intervals over seeds" if cell.seeds > 1 else f"95% intervals over {cell.unit}"
    return f"{what or f'{cell.n:,} {cell.unit} per run'}, {seeds}, {kind}."
