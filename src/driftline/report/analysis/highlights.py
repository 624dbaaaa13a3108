"""Bold and italic numbers by the rules of Seq-to-Final (Ji, Alaa, Sontag, Appendix E).

In a row of methods, a number is italic if it is at most .02 below the oracle, and bold if it is italic or at most .02
below the best method; the oracle is not ranked. A mean over rows is judged by its differences from the oracle, or from
the best of each row: it is highlighted if their average is less than one standard deviation below 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

NEAR = 0.02
SLACK = 1e-9  # .60 - .58 is slightly more than .02 in binary
ORACLE = "oracle"  # as the paper calls it
BY_ORACLE = " (settings by ORACLE)"
"""Suffix of a method whose settings were selected on the test streams."""

Values = Mapping[str, float]
"""A number for each method."""


@dataclass(frozen=True)
class Highlight:
    """Style of a number in a table."""

    bold: bool = False
    italic: bool = False


PLAIN = Highlight()


def is_ranked(method: str) -> bool:
    """Return whether a method sees no more than the others."""
    return method != ORACLE and BY_ORACLE not in method


def highlights(row: Values) -> dict[str, Highlight]:
    """Return the highlights of one row.

    >>> found = highlights({"oracle": 0.70, "lp-ft": 0.68, "seq-ft": 0.66, "baseline": 0.65})
    >>> [(method, style.bold, style.italic) for method, style in found.items()]
    [('lp-ft', True, True), ('seq-ft', True, False), ('baseline', False, False)]
    """
    return {
        method: _highlight(to_best=_near([value - _best(row)]), to_oracle=_near(_from_oracle([row], method)))
        for method, value in row.items()
        if is_ranked(method)
    }


def highlights_of_means(rows: Sequence[Values]) -> dict[str, Highlight]:
    """Return the highlights of the means over rows; a method is judged by the rows that have it."""
    found = {}
    for method in dict.fromkeys(method for row in rows for method in row if is_ranked(method)):
        from_best = [row[method] - _best(row) for row in rows if method in row]
        to_oracle = _within_one_std(_from_oracle(rows, method))
        found[method] = _highlight(to_best=_within_one_std(from_best), to_oracle=to_oracle)
    return found


def _highlight(to_best: bool, to_oracle: bool) -> Highlight:
    return Highlight(bold=to_best or to_oracle, italic=to_oracle)


def _best(row: Values) -> float:
    return max(value for method, value in row.items() if is_ranked(method))


def _from_oracle(rows: Iterable[Values], method: str) -> list[float]:
    return [row[method] - row[ORACLE] for row in rows if method in row and ORACLE in row]


def _near(differences: Sequence[float]) -> bool:
    return bool(differences) and min(differences) >= -NEAR - SLACK


def _within_one_std(differences: Sequence[float]) -> bool:
    """Return whether the average is less than one (population) standard deviation below 0."""
    if not differences:
        return False
    below = -float(np.mean(differences))
    return below <= SLACK or below < float(np.std(differences)) - SLACK
