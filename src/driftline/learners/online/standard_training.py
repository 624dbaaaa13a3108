"""Standard training: the whole network at intervals, on all labels so far.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED). Departs from the authors' code
as `online.base` says, and in that inputs are cropped and flipped at random only with `augment`.

Compute is what the passes really need: three times the forward one, less the gradient of the first layer's inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.learners.online.base import OnlineLearner
from driftline.learners.settings import NonNegative
from driftline.registry import register


@register("method", "standard-training")
@dataclass
class StandardTraining(OnlineLearner):
    """Standard training of the whole network on all labels so far; the optimizer state is kept."""

    lr: NonNegative = 0.01
