"""Fine-tuning: go on training the same model on the latest labels; optimiser state is carried over, as in Wild-Time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftline.learners.trained import Trained
from driftline.registry import register


@register("method", "ft")
@dataclass
class FineTune(Trained):
    """Continue from the previous weights on what has just been revealed."""

    requires = "partial-fit"

    def learn(self, x: Any, y: Any) -> None:
        self.train(x, y)
