"""Synthetic tables with known drift, for examples and tests."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd


def table(
    drift: Literal["none", "covariate", "concept", "noise"] = "none", rows: int = 4000, seed: int = 0
) -> pd.DataFrame:
    """Return a table with columns when, a, b, color and y, whose second half has drifted.

    The rule is y = [b > 0] where a < 1, else [b < 0]. covariate: the values of `a` move and the rule stays, so a model
    that learned it stays good. concept: the rule is inverted. noise: 60 % of the labels are random instead of 10 %.

    >>> table(rows=4).columns.tolist()
    ['when', 'a', 'b', 'color', 'y']
    """
    random = np.random.default_rng(seed)
    late = np.arange(rows) >= rows // 2
    a = random.normal(size=rows) + (1.5 * late if drift == "covariate" else 0)
    b = random.normal(size=rows)
    color = random.choice(["red", "green", "blue"], rows)
    y = np.where(a < 1, b > 0, b < 0)
    if drift == "concept":
        y = np.where(late, ~y, y)
    chance = np.where(late & (drift == "noise"), 0.6, 0.1)
    y = np.where(random.random(rows) < chance, random.random(rows) < 0.5, y)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(rows) * (365 / rows), unit="D")
    return pd.DataFrame({"when": when, "a": a, "b": b, "color": color, "y": np.where(y, "yes", "no")})
