"""The notation for sequences of shifts.

`CLR` is three steps of one shift each, and a number behind a letter is its amount: `R45L` is two steps. With commas a
step may hold several shifts: `CR,L` is two steps. A user's own block is joined with a plus and takes its amount after
an equals sign: `C+blur.py:Blur=2,R`. In Python a sequence may also be a list with an item per step, each a text as
between two commas or a list of texts and shifts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from driftline import registry
from driftline.errors import UserError, unknown_name
from driftline.shifts.base import Shift

ShiftSteps = tuple[tuple[Shift, ...], ...]
ShiftNotation = str | Sequence[str | Shift | Sequence[str | Shift]]
SHIFT_PATTERN = re.compile(r"\s*([^\W\d_])(-?(?:\d+\.?\d*|\.\d+))?\s*")


def parse(sequence: ShiftNotation) -> ShiftSteps:
    """Return the shifts of each step.

    >>> [[str(shift) for shift in step] for step in parse("CR45,L")]
    [['uniform noise', 'rotation 45'], ['label flip']]
    """
    if not isinstance(sequence, str):
        steps = tuple(_step(step) for step in sequence)
    elif any(mark in sequence for mark in ",+:="):
        steps = tuple(_step(step) for step in sequence.split(","))
    else:
        steps = tuple((shift,) for shift in _shifts(sequence)) if sequence.strip() else ()
    _check_counts(steps)
    return steps


def _step(step: str | Shift | Sequence[str | Shift]) -> tuple[Shift, ...]:
    if isinstance(step, str):
        if not step.strip():
            raise UserError("a sequence of shifts has an empty step; in a list, [] is a step without any shift")
        step = step.split("+")
    parts = [step] if isinstance(step, Shift) else step
    return tuple(shift for part in parts for shift in ([part] if isinstance(part, Shift) else _shifts(part)))


def _shifts(text: str) -> list[Shift]:
    """Return the shifts of a run of letters, or the one shift of a longer name."""
    name, _, number = text.strip().partition("=")
    if ":" in name or "=" in text or (len(name) > 1 and name in registry.names("shift")):
        return [_build_shift(name, number)]
    found: list[Shift] = []
    at = 0
    while at < len(text) or not found:
        match = SHIFT_PATTERN.match(text, at)
        if not match:
            raise UserError(f"cannot read '{text[at:]}' in the shifts '{text}': write letters such as CLR or R45,TL")
        found.append(_build_shift(match[1], match[2] or ""))
        at = match.end()
    return found


def _build_shift(name: str, number: str) -> Shift:
    if ":" not in name and name not in registry.names("shift"):
        raise unknown_name("shift", name, registry.names("shift"), "; a block of your own is written path.py:Name")
    kind: type[Shift] = registry.get("shift", name)
    if not number:
        return kind()
    if kind.amount_range is None:
        raise UserError(f"shift '{name}' takes no number, but {number} follows it")
    low, high = kind.amount_range
    try:
        amount = float(number)
    except ValueError:
        amount = float("nan")
    if not low <= amount <= high:
        raise UserError(f"shift '{name}' has the amount {number}: give a number from {low:g} to {high:g}")
    return kind(amount=int(amount) if amount == int(amount) else amount)


def _check_counts(steps: ShiftSteps) -> None:
    counts = Counter(type(shift) for step in steps for shift in step)
    for kind, count in counts.items():
        if kind.max_count is not None and count > kind.max_count[0]:
            raise UserError(f"{kind()} occurs {count} times; the maximum is {kind.max_count[0]}: {kind.max_count[1]}")
