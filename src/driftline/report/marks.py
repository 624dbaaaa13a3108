"""Bold and italic as Seq-to-Final (Ji, Alaa, Sontag, Appendix E) has them.

Within a line of methods, a number is italic if it is within .02 of the oracle or better, and bold if it is italic or
within .02 of the best method; the oracle competes with no one. A mean over lines is judged by its differences from
the oracle, or from each line's best: it is marked if their average is less than one standard deviation below 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

NEAR = 0.02
SLACK = 1e-9  # .60 - .58 is a little more than .02 in binary
ORACLE = "oracle"  # as the paper calls it
BY_ORACLE = " (settings by ORACLE)"
"""Stands behind the name of a method whose settings were chosen on the very streams that it is tested on."""

Values = Mapping[str, float]
"""A number for each method."""


@dataclass(frozen=True)
class Mark:
    """How a number is set."""

    bold: bool = False
    italic: bool = False


PLAIN = Mark()


def competes(method: str) -> bool:
    """Whether a method knows no more than the others."""
    return method != ORACLE and BY_ORACLE not in method


def marks(line: Values) -> dict[str, Mark]:
    """The marks of one line.

    >>> found = marks({"oracle": 0.70, "lp-ft": 0.68, "seq-ft": 0.66, "baseline": 0.65})
    >>> [(method, mark.bold, mark.italic) for method, mark in found.items()]
    [('lp-ft', True, True), ('seq-ft', True, False), ('baseline', False, False)]
    """
    return {
        method: _mark(to_best=_near([value - _best(line)]), to_oracle=_near(_from_oracle([line], method)))
        for method, value in line.items()
        if competes(method)
    }


def mean_marks(lines: Sequence[Values]) -> dict[str, Mark]:
    """The marks of the means over lines; a method is judged by the lines that have it."""
    found = {}
    for method in dict.fromkeys(method for line in lines for method in line if competes(method)):
        from_best = [line[method] - _best(line) for line in lines if method in line]
        found[method] = _mark(to_best=_on_par(from_best), to_oracle=_on_par(_from_oracle(lines, method)))
    return found


def _mark(to_best: bool, to_oracle: bool) -> Mark:
    return Mark(bold=to_best or to_oracle, italic=to_oracle)


def _best(line: Values) -> float:
    return max(value for method, value in line.items() if competes(method))


def _from_oracle(lines: Iterable[Values], method: str) -> list[float]:
    return [line[method] - line[ORACLE] for line in lines if method in line and ORACLE in line]


def _near(differences: Sequence[float]) -> bool:
    return bool(differences) and min(differences) >= -NEAR - SLACK


def _on_par(differences: Sequence[float]) -> bool:
    """Whether the average is less than one (population) standard deviation below 0."""
    if not differences:
        return False
    below = -float(np.mean(differences))
    return below <= SLACK or below < float(np.std(differences)) - SLACK
