"""MoCo pretraining: momentum contrast on inputs alone.

He et al., "Momentum Contrast for Unsupervised Visual Representation Learning", CVPR 2020, as far as
`learners.self_supervised.moco_streaming` follows it. The last layer is not trained and ends as zero, so the first
training in a stream starts it. Such features need another learning rate there: Wallingford et al., 2020 (NED),
fine-tune with 30 instead of 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from torch import Tensor

from driftline.learners.settings import Count, Positive
from driftline.learners.supervised.base import SupervisedLearner
from driftline.models.preprocessing import to_tensor
from driftline.pretraining.episodic import zero_head
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.contrastive import MoCo
from driftline.training.contrastive_views import SimCLRAugmentation, check_numeric_inputs
from driftline.training.fit import fit_input_scaling, optimizer_step
from driftline.types import Inputs, Network, Samples, Targets


@register("pretraining", "moco")
@dataclass
class MoCoTraining(SupervisedLearner):
    """MoCo pretraining on upstream inputs; labels are not used."""

    encoder_momentum: float = 0.999  # momentum of the key encoder
    queue_size: Count = 1024  # number of negatives in the queue
    temperature: Positive = 0.07  # temperature of the softmax
    min_crop_area: Annotated[float, Field(gt=0, le=1)] = 0.2  # minimum share of an image that a view shows

    requires = "network"

    transient = frozenset({"_rng"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        self.check_model(model)
        check_numeric_inputs(model)
        projector = self.seed.child("projector")
        given = {"momentum": self.encoder_momentum, "temperature": self.temperature}
        self.moco = MoCo(model, projector, size=self.queue_size, **given)
        super().prepare(model, task, upstream)

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.optim.add_param_group({"params": list(self.moco.projector.parameters())})

    def update(self, x: Tensor, y: Tensor) -> None:
        """Make one step of momentum contrast."""
        a, b = SimCLRAugmentation(min_crop_area=self.min_crop_area).two_views(x, self._rng)
        optimizer_step(self.optim, self.moco.loss(a, b))

    def train(self, x: Inputs, y: Targets) -> None:
        self._rng = self.seed.child("views", self.training_rounds).torch()
        fit_input_scaling(self.moco.key_network, to_tensor(x))
        super().train(x, y)
        if self.updates:  # a pretrained network is not trained again
            zero_head(self.model)
