"""Numbers as text: percentages, intervals, amounts and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from driftline.benchmarks.summary import Number

NONE = "–"


def format_value(value: float | None, share: bool, decimals: int | None = None) -> str:
    """Return a share in percent with one decimal, or another number with two; `decimals` replaces their number.

    >>> format_value(0.8125, share=True), format_value(1.5, share=False), format_value(float("nan"), share=True)
    ('81.2', '1.50', '–')
    """
    if value is None or not math.isfinite(value):
        return NONE
    if decimals is None:
        decimals = 1 if share else 2
    return f"{100 * value if share else value:.{decimals}f}"


def format_percent(value: float | None) -> str:
    """Return a share in percent."""
    return format_value(value, share=True)


def format_decimal(value: float | None) -> str:
    """Return a number with two decimals."""
    return format_value(value, share=False)


def format_interval(number: Number, share: bool) -> str:
    """Return `[low, high]`, or nothing if the number has no interval."""
    if math.isnan(number.low):
        return ""
    return f"[{format_value(number.low, share)}, {format_value(number.high, share)}]"


def format_points(number: Number) -> str:
    """Return a difference of shares in percentage points, with its interval if it has one.

    >>> from driftline.metrics.significance import Difference
    >>> format_points(Difference(-0.125, -0.2, -0.05, 3, 0.01))
    '-12.5 points [-20.0, -5.0]'
    """
    return f"{format_value(number.value, True)} points {format_interval(number, True)}".rstrip()


def format_false_alarm(rate: float) -> str:
    """Return the false-alarm rate of a horizon, or nothing for a number that has none.

    >>> format_false_alarm(0.021), format_false_alarm(float("nan"))
    ('FA 2%', '')
    """
    return "" if math.isnan(rate) else f"FA {rate:.0%}"


def format_amount(amount: float | None) -> str:
    """Return an amount, such as compute, with three significant digits.

    >>> format_amount(28.2944), format_amount(0.01234), format_amount(123456.7), format_amount(None)
    ('28.3', '0.0123', '123,457', '–')
    """
    if amount is None or not math.isfinite(amount):
        return NONE
    return f"{amount:,.0f}" if abs(amount) >= 100 else f"{amount:.3g}"


def format_images(count: float | None) -> str:
    """Return a number of images.

    >>> format_images(12500.0), format_images(None)
    ('12,500 images', '–')
    """
    return NONE if count is None or math.isnan(count) else f"{count:,.0f} images"


def format_p(p: float, relation: bool = False) -> str:
    """Return a p-value, after an equals sign or "<" if a relation is wanted.

    >>> format_p(0.0312), format_p(0.00002), format_p(float("nan"))
    ('0.031', '<0.001', '–')
    >>> format_p(0.0312, relation=True), format_p(0.00002, relation=True)
    ('= 0.031', '< 0.001')
    """
    if math.isnan(p):
        return NONE
    if relation:
        return "< 0.001" if p < 0.001 else f"= {p:.3f}"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def count_range(counts: Sequence[int]) -> str:
    """Return the smallest and the largest of several counts.

    >>> count_range([3, 3]), count_range([1000, 2000]), count_range([])
    ('3', '1,000–2,000', '')
    """
    return "–".join(f"{count:,}" for count in sorted({min(counts), max(counts)})) if counts else ""


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> count_of(1, "seed"), count_of(1200, "run")
    ('1 seed', '1,200 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
