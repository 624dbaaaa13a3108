"""CORAL-T: correlation alignment of features across windows of time.

Sun and Saenko, "Deep CORAL: Correlation Alignment for Deep Domain Adaptation", ECCV 2016; as a method over windows of
time: Yao et al., "Wild-Time", NeurIPS 2022.

Features are the input of the last linear layer. Wild-Time's code aligns logits instead, and gives groups of one
example a covariance of the wrong shape; here such groups are left out of the penalty. A network that is one linear
layer has no features to shape: on it this is ERM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from driftline.learners.windowed import Windowed
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.features import linear_layers, with_features
from driftline.training.objectives import coral
from driftline.training.windows import Grouped
from driftline.types import Samples


@register("method", "coral-t")
@dataclass
class CoralT(Windowed):
    """CORAL-T: mean loss + strength * distance between the windows' feature means and covariances."""

    strength: float = 0.9

    cost_free = frozenset({"strength"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        linear_layers(model)  # refuses a network that has none
        super().prepare(model, task, upstream)

    def group_loss(self, batch: Grouped) -> Tensor:
        outputs, features = with_features(self.model, batch.x)
        return self._task.loss(outputs, batch.y).mean() + self.strength * coral(batch.split(features))
