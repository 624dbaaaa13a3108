"""`--fail-if "tas<0.9"`: comparisons of an audit's numbers, nothing else; no expression is ever evaluated as code."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping

from driftline.errors import UserError, unknown

COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
PART = re.compile(r"\s*([a-z][a-z0-9_]*)\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*", re.IGNORECASE)


def fails(condition: str, numbers: Mapping[str, float | None]) -> bool:
    """Whether a condition holds: comparisons of a name with a number, joined by `and` and `or` (`and` binds tighter).

    >>> fails("tas < 0.9 or sh < 2 and dh < 3", {"tas": 0.95, "sh": 1.0, "dh": 2.0})
    True
    """
    either = re.split(r"\s+or\s+", condition.strip())
    found = [[_holds(part, condition, numbers) for part in re.split(r"\s+and\s+", terms)] for terms in either]
    return any(all(terms) for terms in found)


def check(condition: str) -> None:
    """Refuse what is not a condition, before any work is done."""
    for part in re.split(r"\s+(?:or|and)\s+", condition.strip()):
        if not PART.fullmatch(part):
            raise UserError(
                f"cannot read '{part}' in --fail-if \"{condition}\": write a name, one of <, <=, >, >=, and a number, "
                "such as tas<0.9; join several with and, or"
            )


def _holds(part: str, condition: str, numbers: Mapping[str, float | None]) -> bool:
    check(part)
    match = PART.fullmatch(part)
    assert match is not None
    name = match[1].lower()
    if name not in numbers:
        raise unknown("number", name, numbers, f' (in --fail-if "{condition}")')
    value = numbers[name]
    if value is None:
        raise UserError(f'--fail-if "{condition}": this audit could not determine {name}, so the gate cannot be judged')
    return bool(COMPARE[match[2]](value, float(match[3])))
