"""The choice of a search, and its noise: the runner-up, the margin and the margin's standard error.

Candidates run on the same validation seeds, so their scores are compared in pairs. A margin of at most one standard
error is within noise: another draw of validation streams might have chosen the other. There the smaller learning rate
wins, as in the one-standard-error rule of Breiman et al., "Classification and Regression Trees", 1984, which takes the
simplest of the models that are as good as the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from driftline.spec.job import SearchSpace
from driftline.types import JsonObject

if TYPE_CHECKING:
    from driftline.engine.stages.search_round import SearchState

LEARNING_RATE = "lr"


@dataclass(frozen=True)
class Margin:
    """How far a candidate is above another, on the runs that both have."""

    difference: float
    standard_error: float
    """NaN if there is only one run."""

    @property
    def within_noise(self) -> bool:
        """Whether the lead, in either direction, is at most one standard error."""
        return abs(self.difference) <= (0.0 if math.isnan(self.standard_error) else self.standard_error)


def margin(a: Sequence[float], b: Sequence[float]) -> Margin:
    """Return the mean of the paired differences of two candidates' scores, and its standard error.

    >>> margin((0.66, 0.608), (0.64, 0.62)), margin((0.66, 0.608), (0.64, 0.62)).within_noise
    (Margin(difference=0.004, standard_error=0.016), True)
    """
    n = min(len(a), len(b))
    differences = np.subtract(a[:n], b[:n])
    error = float(differences.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Margin(round(float(differences.mean()), 12), round(error, 12))


def select(state: SearchState, search: SearchSpace) -> int | None:
    """Return the index of the candidate that the search chooses; None if no candidate has a score."""
    best = state.winner
    if best is None or search.tie_break == "best" or state.eliminated[best]:
        return best
    left = [k for k, why in enumerate(state.eliminated) if not why and state.scores[k]]
    close = [k for k in left if k != best and margin(state.scores[best], state.scores[k]).within_noise]
    rates = {k: search.candidates[k].get(LEARNING_RATE) for k in (best, *close)}
    if not all(isinstance(rate, int | float) for rate in rates.values()):
        return best
    smallest = min(rates.values())  # type: ignore[type-var]
    return max((k for k, rate in rates.items() if rate == smallest), key=lambda k: (state.score(k), -k))


def runner_up(state: SearchState, selected: int) -> int | None:
    """Return the best of the other candidates; None if no other has a score."""
    others = [k for k, scores in enumerate(state.scores) if k != selected and scores and state.scores[selected]]
    return max(others, key=lambda k: (not state.eliminated[k], state.score(k), -k), default=None)


def describe_choice(state: SearchState, search: SearchSpace, selected: int) -> JsonObject:
    """Return the runner-up, the margin and its noise for the card."""
    second = runner_up(state, selected)
    if second is None:
        return {}
    found = margin(state.scores[selected], state.scores[second])
    return {
        "runner_up": {**search.candidates[second], "score": state.score(second)},
        "margin": found.difference,
        "margin_se": None if math.isnan(found.standard_error) else found.standard_error,
        "within_noise": found.within_noise,
    }
