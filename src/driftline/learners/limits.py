"""What the settings of a method may be, in words: an optimiser's own complaint would be a traceback."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from driftline.errors import UserError

Limit = tuple[Callable[[float], bool], str]
"""Whether a number will do, and which ones do."""

COUNT: Limit = (lambda value: value >= 1, "1 or more")
RATE: Limit = (lambda value: 0 <= value < math.inf, "0 or more")
POSITIVE: Limit = (lambda value: 0 < value < math.inf, "more than 0")
SHARE: Limit = (lambda value: 0 <= value <= 1, "from 0 to 1")
MOMENTUM: Limit = (lambda value: 0 <= value < 1, "0 or more, and less than 1")

USUAL: dict[str, Limit] = {"lr": RATE, "weight_decay": RATE, "momentum": MOMENTUM, "batch": COUNT, "updates": RATE}
"""Of settings that mean the same wherever they occur."""


def must_keep(name: str, method: Any, limits: Mapping[str, Limit]) -> None:
    """Refuse a method whose settings lie outside of their limits; None stands for a default of its own."""
    for setting, (holds, words) in limits.items():
        value = getattr(method, setting)
        if value is not None and not (isinstance(value, (int, float)) and holds(value)):
            raise UserError(f"{name}.{setting} is {words}, not {value}")
