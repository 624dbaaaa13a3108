"""Log-normal delay: most labels come soon, a few very late."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field
from scipy.special import ndtri

from driftline.label_rules.base import LabelRule, Positive, whole_steps
from driftline.registry import register


@register("label-rule", "lognormal-delay")
@dataclass
class LognormalDelay(LabelRule):
    """Delays with a log-normal distribution, rounded down to whole steps."""

    median: Positive = 3.0  # median number of steps
    sigma: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0  # standard deviation of the logarithm

    delays: ClassVar[bool] = True

    def delay(self, positions: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            steps = self.median * np.exp(self.sigma * np.maximum(ndtri(self.draws(positions)), -40))
        return whole_steps(steps)
