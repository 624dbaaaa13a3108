"""MoCo pretraining: momentum contrast on inputs alone.

He et al., "Momentum Contrast for Unsupervised Visual Representation Learning", CVPR 2020, as far as `learners.moco`
follows it. The last layer is not trained and ends as zero, so the first training in a stream starts it.
Such features need another learning rate there: Wallingford et al., 2020 (NED), fine-tune with 30 instead of 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor

from driftline.learners.pretraining_episodic import forget_head
from driftline.learners.settings import Count, Positive
from driftline.learners.trained import Trained
from driftline.models.inputs import as_tensor
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.contrast import Momentum
from driftline.training.fit import descend, measure_inputs
from driftline.training.views import Views, refuse_texts
from driftline.types import Samples


@register("pretraining", "moco")
@dataclass
class MoCoTraining(Trained):
    """MoCo pretraining on upstream inputs; labels are not used."""

    momentum: float = 0.999
    queue_size: Count = 1024
    temperature: Positive = 0.07
    area: Annotated[float, Field(gt=0, le=1)] = 0.2  # the smallest share of an image that a view shows

    requires = "network"

    transient = frozenset({"_draws"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        self.must_suit(model)
        refuse_texts(model)
        projector = self.seed.child("projector")
        given = {"momentum": self.momentum, "temperature": self.temperature}
        self.contrast = Momentum(model, projector, size=self.queue_size, **given)
        super().prepare(model, task, upstream)

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.descent.add_param_group({"params": list(self.contrast.projector.parameters())})

    def update(self, x: Tensor, y: Tensor) -> None:
        """Make one step of momentum contrast."""
        a, b = Views(area=self.area).pair(x, self._draws)
        descend(self.descent, self.contrast.loss(a, b))

    def train(self, x: Any, y: Any) -> None:
        self._draws = self.seed.child("views", self.lessons).torch()
        measure_inputs(self.contrast.slow, as_tensor(x))
        super().train(x, y)
        if self.updates:  # a network that comes trained is left as it is
            forget_head(self.model)
