"""Geometric delay: at every step, a label arrives with the same probability."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from driftline.label_rules.base import LabelRule, whole_steps
from driftline.registry import register


@register("label-rule", "geometric-delay")
@dataclass
class GeometricDelay(LabelRule):
    """Delays with a geometric distribution: P(d) = p (1 - p)^d with p = 1 / (mean + 1)."""

    mean: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0  # mean number of steps

    delays: ClassVar[bool] = True

    def delay(self, positions: np.ndarray) -> np.ndarray:
        if self.mean == 0:
            return np.zeros(len(positions), int)
        stays = np.log(self.mean) - np.log1p(self.mean)  # of 1 - p
        return whole_steps(np.log1p(-self.draws(positions)) / stays)
