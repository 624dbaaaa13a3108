"""Limits of settings: where they lie, and how a setting beyond them is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.settings import (
    BelowOne,
    Count,
    CountOrZero,
    Fraction,
    Inside,
    NonNegative,
    Positive,
    check_settings,
)


@dataclass
class Mine(Learner):
    count: Count = 1
    updates: CountOrZero = 0
    rate: NonNegative = 0.0
    scale: Positive | None = None
    share: Fraction = 1.0
    momentum: BelowOne = 0.0
    holdout: Inside = 0.5
    kind: Literal["a", "b"] = "a"


def test_values_at_the_limits_are_accepted() -> None:
    check_settings(Mine())
    check_settings(Mine(count=5, updates=3, rate=2, scale=1e-9, share=0, momentum=0.999, holdout=1e-9, kind="b"))
    check_settings(Learner())


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("count", 0, "should be greater than or equal to 1"),
        ("count", 1.5, "should be a valid integer"),
        ("updates", -1, "should be greater than or equal to 0"),
        ("rate", float("inf"), "should be a finite number"),
        ("scale", 0, "should be greater than 0"),
        ("share", 1.1, "should be less than or equal to 1"),
        ("momentum", 1, "should be less than 1"),
        ("holdout", 0, "should be greater than 0"),
        ("kind", "c", "should be 'a' or 'b'"),
    ],
)
def test_values_beyond_the_limits_are_refused(setting: str, value: Any, reason: str) -> None:
    with pytest.raises(UserError, match=f"^Mine: {setting}={value}: {reason}"):
        check_settings(Mine(**{setting: value}))
