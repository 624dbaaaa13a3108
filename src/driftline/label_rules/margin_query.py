"""Margin query: labels of the answers whose two largest scores are close."""

from dataclasses import dataclass

import numpy as np

from driftline.label_rules.base import ThresholdQuery
from driftline.registry import register
from driftline.types import Answers


@register("label-rule", "margin-query")
@dataclass
class MarginQuery(ThresholdQuery):
    """The labels of samples whose two largest scores differ by less than a threshold that follows the budget."""

    def certainty(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        assert answers.scores is not None
        largest = np.partition(answers.scores, -2, axis=1)[:, -2:]
        margin: np.ndarray = largest[:, 1] - largest[:, 0]
        return margin
