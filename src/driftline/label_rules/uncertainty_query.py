"""Uncertainty query: labels of the answers with the lowest largest score.

The variable and the randomized variable uncertainty strategy of Žliobaitė et al., "Active Learning with Drifting
Streaming Data", TNNLS 2014. Fixed uncertainty is an adjustment of 0 with a threshold below 1. The budget is counted
over all samples so far, not over a window. A label is asked for if p < threshold * eta, as the definition says; MOA
divides p by eta, and so asks whenever eta is negative.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from driftline.label_rules.base import ThresholdQuery
from driftline.registry import register
from driftline.types import Answers


@register("label-rule", "uncertainty-query")
@dataclass
class UncertaintyQuery(ThresholdQuery):
    """The labels of samples whose largest score is below a threshold that follows the budget."""

    randomized: bool = False  # multiply the threshold by a normal number of mean 1 and variance 1 for each sample

    def certainty(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        assert answers.scores is not None
        largest: np.ndarray = answers.scores.max(axis=1)
        if not self.randomized:
            return largest
        eta = 1 + ndtri(self.draws(positions))
        return np.where(eta > 0, largest / np.where(eta > 0, eta, 1), np.inf)
