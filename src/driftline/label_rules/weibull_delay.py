"""Weibull delay: of shape 1 exponential, below 1 with a heavier tail."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.label_rules.base import LabelRule, Positive, whole_steps
from driftline.registry import register


@register("label-rule", "weibull-delay")
@dataclass
class WeibullDelay(LabelRule):
    """Delays with a Weibull distribution, rounded down to whole steps; of shape 1, exponential."""

    scale: Positive = 5.0  # number of steps within which 63% of the labels arrive
    shape: Positive = 1.0  # below 1, the tail is heavier than exponential

    delays: ClassVar[bool] = True

    def delay(self, positions: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            steps = self.scale * (-np.log1p(-self.draws(positions))) ** (1 / self.shape)
        return whole_steps(steps)
