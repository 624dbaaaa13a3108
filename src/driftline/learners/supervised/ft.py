"""Fine-tuning: continue training on the latest labels, with the same optimizer state.

As in Yao et al., "Wild-Time", NeurIPS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.types import Inputs, Targets


@register("method", "ft")
@dataclass
class FineTune(SupervisedLearner):
    """Fine-tuning on the latest labels, from the previous weights."""

    requires = "partial-fit"

    def learn(self, x: Inputs, y: Targets) -> None:
        self.train(x, y)
