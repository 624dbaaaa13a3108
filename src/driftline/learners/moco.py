"""MoCo features with a streaming classifier (SML) on top.

He et al., "Momentum Contrast for Unsupervised Visual Representation Learning", CVPR 2020; in front of a streaming
classifier: Iovine et al., "Towards streaming land use classification of images with temporal distribution shifts",
ESANN 2025. What that paper and its successor on temporal metrics do not say is chosen here: features are learnt from
the inputs of the first training round and then stay (`feature_lessons`), because a classifier that learns one sample
at a time cannot follow features that change; they are scaled to length one; if the network has more than `width` of
them, a fixed random projection makes them `width`, because a streaming classifier's time grows with their number.

Departs from He et al. in that the queue starts empty instead of with random keys, which makes the first update idle,
and is short, as training rounds are; batch norm is not shuffled, which only matters across devices. The network's
classification layer is never trained or used. The compute of the projection head and of the classifier is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from driftline.errors import UserError
from driftline.learners.streaming import Kind, Streaming
from driftline.learners.trained import Trained
from driftline.models.inputs import as_tensor
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.contrast import Momentum
from driftline.training.encode import embed
from driftline.training.fit import descend, measure_inputs
from driftline.training.views import Views, refuse_texts
from driftline.types import Answers, Samples


@register("method", "moco-sml")
@dataclass
class MoCoStreaming(Trained):
    """MoCo features from the first training round, and a river classifier that learns one sample at a time."""

    head: Kind = "hat"  # Hoeffding adaptive tree, adaptive random forest or incremental naive Bayes
    feature_lessons: int = 1  # how many training rounds train the features; -1: every one
    momentum: float = 0.999
    queue_size: int = 1024
    temperature: float = 0.07
    area: float = 0.2  # the smallest share of an image that a view shows
    width: int = 32  # the most features that the classifier is given

    requires = "network"
    quick: ClassVar[Mapping[str, str]] = {}
    transient = frozenset({"_draws"})
    cost_free = frozenset({"temperature"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        if task.width < 2:
            raise UserError("moco-sml answers with a class, and this task asks for a number")
        self.must_suit(model)
        refuse_texts(model)
        self.contrast = Momentum(
            model,
            self.seed.child("projector"),
            momentum=self.momentum,
            size=self.queue_size,
            temperature=self.temperature,
        )
        super().prepare(model, task, upstream)
        self.classifier = Streaming(self.head, task.width, self.seed.child("classifier"))

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.descent.add_param_group({"params": list(self.contrast.projector.parameters())})

    def update(self, x: Tensor, y: Tensor) -> None:
        """Make one step of momentum contrast; labels are not used."""
        a, b = Views(area=self.area).pair(x, self._draws)
        descend(self.descent, self.contrast.loss(a, b))

    def learn(self, x: Any, y: Any) -> None:
        if self.feature_lessons < 0 or self.lessons < self.feature_lessons:
            self._draws = self.seed.child("views", self.lessons).torch()
            measure_inputs(self.contrast.slow, as_tensor(x))
            self.train(x, y)
        else:
            self.lessons += 1
        self.classifier.learn(self.rows(x), self._task.targets(y))

    def rows(self, x: Any) -> np.ndarray:
        """Return the classifier's input features."""
        found = embed(self.model, x)
        if found.shape[1] > self.width:
            found = found @ torch.randn(found.shape[1], self.width, generator=self.seed.child("fewer").torch())
        rows: np.ndarray = normalize(found, dim=1).numpy()
        return rows

    def predict(self, x: Any) -> Answers:
        return self._task.decode(self.classifier.outputs(self.rows(x)))


for _kind in ("hat", "arf", "nb"):
    register("method", f"moco-{_kind}")(partial(MoCoStreaming, head=_kind))
