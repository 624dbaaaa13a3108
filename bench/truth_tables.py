"""Tables with known truth: what changed in them, when and how.

`make_table(kind, repeat)` returns a table with a time "when", a target "y" and its inputs. It has 16 weeks of 300 rows
(12 weeks for boosting, 12 of 1,500 rows for rare positives), so that an audit with default settings cuts it into weeks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

WEEKS, ROWS, WIDTH = 16, 300, 6
FEW_WEEKS, MANY_ROWS = 12, 1500
FIRST_SEED = 120_000  # those below were seen while the audit was written
START = pd.Timestamp("2023-01-02")  # a Monday
LINEAR, BOOSTING = "logistic-regression", "hist-gradient-boosting"


@dataclass(frozen=True)
class Truth:
    """What is true of a table."""

    aged: bool = False
    miscalibrated: bool = False
    harder: bool = False
    unordered: bool = False
    shape: str = ""
    change: float | None = None
    """Time of the change in weeks."""
    cycle: int | None = None
    weeks: int = WEEKS


Table = tuple[pd.DataFrame, Truth]
Make = Callable[[np.random.Generator], Table]
KINDS: dict[str, tuple[Make, str]] = {}
"""By name: what makes a table, and the model."""


def kind(name: str, model: str = LINEAR) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        KINDS[name] = (make, model)
        return make

    return add


def make_table(name: str, repeat: int) -> Table:
    """Return a table of this kind and its truth."""
    return KINDS[name][0](np.random.default_rng([FIRST_SEED + repeat, *name.encode()]))


def inputs(random: np.random.Generator, weeks: int = WEEKS, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Return normal inputs, and the time of each row in weeks."""
    n = rows * weeks
    return random.normal(size=(n, WIDTH)), np.arange(n) / rows


def table(x: np.ndarray, y: np.ndarray, week: np.ndarray) -> pd.DataFrame:
    when = START + pd.to_timedelta(7 * week, unit="D")
    return pd.DataFrame({"when": when, **{f"x{k}": x[:, k] for k in range(x.shape[1])}, "y": y})


def score(x: np.ndarray, degrees: np.ndarray | float = 0.0, length: float = 2.0) -> np.ndarray:
    """Return the linear score of each row: coefficients of the first two inputs, turned by an angle."""
    angle = np.deg2rad(degrees)
    return np.asarray(length * (np.cos(angle) * x[:, 0] + np.sin(angle) * x[:, 1]))


def draw(random: np.random.Generator, logit: np.ndarray) -> np.ndarray:
    return np.where(random.random(len(logit)) < 1 / (1 + np.exp(-logit)), "yes", "no")


def some_week(random: np.random.Generator, weeks: int = WEEKS) -> int:
    """Return a week that has at least a quarter of the weeks on both sides."""
    return int(random.integers(weeks // 4, weeks - weeks // 4 + 1))


def no_change(random: np.random.Generator, weeks: int) -> Table:
    x, week = inputs(random, weeks)
    return table(x, draw(random, score(x)), week), Truth(weeks=weeks)


def one_change(random: np.random.Generator, at: float, degrees: float, weeks: int = WEEKS) -> Table:
    x, week = inputs(random, weeks)
    y = draw(random, score(x, np.where(week >= at, degrees, 0.0)))
    return table(x, y, week), Truth(aged=True, shape="abrupt", change=at, weeks=weeks)


@kind("no drift")
def no_drift(random: np.random.Generator) -> Table:
    return no_change(random, WEEKS)


@kind("no drift, boosting", BOOSTING)
def no_drift_boosting(random: np.random.Generator) -> Table:
    return no_change(random, FEW_WEEKS)


@kind("abrupt at a boundary")
def abrupt(random: np.random.Generator) -> Table:
    return one_change(random, some_week(random), 90)


@kind("abrupt inside a period")
def inside(random: np.random.Generator) -> Table:
    return one_change(random, some_week(random) - 1 + random.uniform(0.2, 0.8), 90)


@kind("abrupt, mild")
def mild(random: np.random.Generator) -> Table:
    return one_change(random, some_week(random), 34)


@kind("abrupt, boosting", BOOSTING)
def abrupt_boosting(random: np.random.Generator) -> Table:
    return one_change(random, some_week(random, FEW_WEEKS), 90, FEW_WEEKS)


@kind("gradual")
def gradual(random: np.random.Generator) -> Table:
    x, week = inputs(random)
    return table(x, draw(random, score(x, 90 * week / WEEKS)), week), Truth(aged=True, shape="gradual")


@kind("seasonal, cycle of 4")
def seasonal(random: np.random.Generator) -> Table:
    x, week = inputs(random)
    season = 45 * np.sin(2 * np.pi * np.floor(week) / 4)
    return table(x, draw(random, score(x, season)), week), Truth(aged=True, shape="recurring", cycle=4)


@kind("unordered differences")
def unordered(random: np.random.Generator) -> Table:
    x, week = inputs(random)
    angles = random.uniform(-60, 60, WEEKS)
    return table(x, draw(random, score(x, angles[week.astype(int)])), week), Truth(unordered=True)


@kind("one odd period")
def odd(random: np.random.Generator) -> Table:
    x, week = inputs(random)
    degrees = np.where(week.astype(int) == random.integers(2, WEEKS - 2), 90.0, 0.0)
    return table(x, draw(random, score(x, degrees)), week), Truth(unordered=True)


@kind("inputs move")
def inputs_move(random: np.random.Generator) -> Table:
    x, week = inputs(random)
    x[:, 1:3] += 1.5 * week[:, None] / WEEKS
    return table(x, draw(random, score(x)), week), Truth()


@kind("base rate moves")
def base_rate(random: np.random.Generator) -> Table:
    """The share of "yes" goes from 30 to 70 %; the inputs of each class stay."""
    x, week = inputs(random)
    y = np.where(random.random(len(week)) < 0.3 + 0.4 * week / WEEKS, "yes", "no")
    x[:, 0] += np.where(y == "yes", 0.8, -0.8)
    return table(x, y, week), Truth(miscalibrated=True)


@kind("noise rises")
def noise(random: np.random.Generator) -> Table:
    x, week = inputs(random)
    y = draw(random, score(x))
    y = np.where(random.random(len(y)) < 0.55 * week / WEEKS, random.choice(["yes", "no"], len(y)), y)
    return table(x, y, week), Truth(harder=True)


def rare_table(random: np.random.Generator, at: float) -> Table:
    """2.3 % positives; a model has AUC 0.96, and 0.5 after the change."""
    x, week = inputs(random, FEW_WEEKS, MANY_ROWS)
    y = draw(random, score(x, np.where(week >= at, 90.0, 0.0), length=3.0) - 7)
    changes = at < FEW_WEEKS
    return table(x, y, week), Truth(
        aged=changes, shape="abrupt" * changes, change=at if changes else None, weeks=FEW_WEEKS
    )


@kind("rare positives, no drift")
def rare_no_drift(random: np.random.Generator) -> Table:
    return rare_table(random, FEW_WEEKS)


@kind("rare positives, replaced")
def rare(random: np.random.Generator) -> Table:
    return rare_table(random, FEW_WEEKS / 2)


def number_table(random: np.random.Generator, degrees: float, rise: float = 0.0) -> Table:
    x, week = inputs(random)
    at = some_week(random)
    y = score(x, np.where(week >= at, degrees, 0.0)) + (1 + rise * week / WEEKS) * random.normal(size=len(week))
    truth = Truth(aged=True, shape="abrupt", change=at) if degrees else Truth(harder=rise > 0)
    return table(x, y, week), truth


@kind("regression, no drift")
def number_no_drift(random: np.random.Generator) -> Table:
    return number_table(random, 0)


@kind("regression, abrupt")
def number_abrupt(random: np.random.Generator) -> Table:
    return number_table(random, 90)


@kind("regression, noise rises")
def number_noise(random: np.random.Generator) -> Table:
    return number_table(random, 0, rise=1.0)


def mixed_table(random: np.random.Generator, at: float | None) -> Table:
    """Numbers, a category and missing values."""
    x, week = inputs(random)
    color = random.choice(["red", "green", "blue"], len(week))
    degrees = 0.0 if at is None else np.where(week >= at, 90.0, 0.0)
    y = draw(random, score(x, degrees) + np.where(color == "red", 1.0, -0.5))
    frame = table(x, y, week).assign(color=color)
    frame = frame.mask(random.random(frame.shape) < np.where(frame.columns.isin(["when", "y"]), 0.0, 0.1))
    return frame, Truth() if at is None else Truth(aged=True, shape="abrupt", change=at)


@kind("mixed types, no drift")
def mixed_no_drift(random: np.random.Generator) -> Table:
    return mixed_table(random, None)


@kind("mixed types, abrupt")
def mixed(random: np.random.Generator) -> Table:
    return mixed_table(random, some_week(random))
