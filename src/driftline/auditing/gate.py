"""Conditions for `--fail-if`, such as "tas<0.9": comparisons of numbers. Nothing is evaluated as code."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping

from driftline.errors import UserError, unknown_name

ESTIMATES = (
    *("tas", "tas_minimum", "sh", "dh", "staleness", "fresh", "old", "first_own", "first_later", "baseline", "above"),
    *("covariate_gap", "conditional_gap", "gain", "newer_rows", "more_rows"),
)
NAMES = {
    *("rows", "periods", "domain_auc", "changed_features", "never", "best", "recommended", "retrainings", "behind"),
    *("aged", "miscalibrated", "unordered", "harder", "harder_p", "order_p", "difference_p", "label_shift"),
    *("prediction_shift", "cost"),
    *(f"{name}{end}" for name in ESTIMATES for end in ("", "_low", "_high")),
}
"""All names that a condition can use; an audit has some of them, depending on its inputs."""
COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
PART = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*", re.IGNORECASE)


def fails(condition: str, numbers: Mapping[str, float | None]) -> bool:
    """Return whether a condition holds: comparisons joined by `and` and `or`, where `and` binds tighter.

    >>> fails("tas < 0.9 or sh < 2 and dh < 3", {"tas": 0.95, "sh": 1.0, "dh": 2.0})
    True
    """
    alternatives = re.split(r"\s+or\s+", condition.strip(), flags=re.IGNORECASE)
    terms = [re.split(r"\s+and\s+", part, flags=re.IGNORECASE) for part in alternatives]
    results = [[_holds(part, condition, numbers) for part in parts] for parts in terms]
    return any(all(holds) for holds in results)


def describe(condition: str, numbers: Mapping[str, float | None]) -> str:
    """Return the numbers that a condition compares, with their intervals.

    >>> describe("tas<0.9 or rows<100", {"tas": 0.8899, "tas_low": 0.861, "tas_high": 0.92, "rows": 4000})
    'tas = 0.8899 [0.861, 0.92], rows = 4000'
    """
    names = [_parse(part, condition)[1].lower() for part in _parts(condition)]
    return ", ".join(_describe(name, numbers) for name in dict.fromkeys(names))


def check(condition: str) -> None:
    """Raise UserError if this is not a condition on known names."""
    for part in _parts(condition):
        name = _parse(part, condition)[1].lower()
        if name not in NAMES:
            raise unknown_name("number", name, NAMES, f' (in --fail-if "{condition}")')


def _describe(name: str, numbers: Mapping[str, float | None]) -> str:
    low, high = (numbers.get(f"{name}_{end}") for end in ("low", "high"))
    interval = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
    return f"{name} = {numbers[name]:.6g}{interval}"


def _parts(condition: str) -> list[str]:
    return re.split(r"\s+(?:or|and)\s+", condition.strip(), flags=re.IGNORECASE)


def _parse(part: str, condition: str) -> re.Match[str]:
    match = PART.fullmatch(part)
    if match is None:
        raise UserError(
            f"cannot read '{part}' in --fail-if \"{condition}\": write a name, one of <, <=, >, >=, and a number, "
            "such as tas<0.9; join several with and, or"
        )
    return match


def _holds(part: str, condition: str, numbers: Mapping[str, float | None]) -> bool:
    match = _parse(part, condition)
    name = match[1].lower()
    if name not in numbers:
        raise unknown_name("number", name, numbers, f' (in --fail-if "{condition}")')
    value = numbers[name]
    if value is None:
        raise UserError(
            f'--fail-if "{condition}": this audit could not determine {name}, so the condition cannot be checked'
        )
    return bool(COMPARE[match[2]](value, float(match[3])))
