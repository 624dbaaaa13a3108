"""MoCo features with a streaming classifier (SML) on top.

He et al., "Momentum Contrast for Unsupervised Visual Representation Learning", CVPR 2020; in front of a streaming
classifier: Iovine et al., "Towards streaming land use classification of images with temporal distribution shifts",
ESANN 2025. What that paper and its successor on temporal metrics do not say is chosen here: features are learned from
the inputs of the first training round and then stay (`n_feature_rounds`), because a classifier that learns one sample
at a time cannot follow features that change; they are scaled to length one; if the network has more than `max_features`
of them, a fixed random projection makes them `max_features`, because a streaming classifier's time grows with their
number.

Departs from He et al. in that the queue starts empty instead of with random keys, which makes the first update idle,
and is short, as training rounds are; batch norm is not shuffled, which only matters across devices. The network's
classification layer is never trained or used. The compute of the projection head and of the classifier is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from driftline.device import to_device, to_numpy
from driftline.errors import UserError
from driftline.learners.self_supervised.river_classifier import ClassifierKind, RiverClassifier
from driftline.learners.supervised.base import SupervisedLearner
from driftline.models.preprocessing import to_tensor
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.cached_features import extract_features
from driftline.training.contrastive import MoCo
from driftline.training.contrastive_views import SimCLRAugmentation, check_numeric_inputs
from driftline.training.fit import fit_input_scaling, optimizer_step
from driftline.types import Answers, Inputs, Network, Samples, Targets


@register("method", "moco-sml")
@dataclass
class MoCoStreaming(SupervisedLearner):
    """MoCo features from the first training round, and a river classifier that learns one sample at a time."""

    classifier_kind: ClassifierKind = (
        "hat"  # Hoeffding adaptive tree, adaptive random forest or incremental naive Bayes
    )
    n_feature_rounds: int = 1  # how many training rounds train the features; -1: every one
    encoder_momentum: float = 0.999  # momentum of the key encoder
    queue_size: int = 1024  # number of negatives in the queue
    temperature: float = 0.07  # temperature of the softmax
    min_crop_area: float = 0.2  # minimum share of an image that a view shows
    max_features: int = 32  # maximum number of features of the classifier

    requires = "network"
    quick: ClassVar[Mapping[str, str]] = {}
    transient = frozenset({"_rng"})
    cost_free = frozenset({"temperature"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        if task.width < 2:
            raise UserError("moco-sml is a classifier, and this task is a regression")
        self.check_model(model)
        check_numeric_inputs(model)
        self.moco = MoCo(
            model,
            self.seed.child("projector"),
            momentum=self.encoder_momentum,
            size=self.queue_size,
            temperature=self.temperature,
        )
        super().prepare(model, task, upstream)
        self.classifier = RiverClassifier(self.classifier_kind, task.width, self.seed.child("classifier"))

    def new_optimizer(self) -> None:
        super().new_optimizer()
        self.optim.add_param_group({"params": list(self.moco.projector.parameters())})

    def update(self, x: Tensor, y: Tensor) -> None:
        """Make one step of momentum contrast; labels are not used."""
        a, b = SimCLRAugmentation(min_crop_area=self.min_crop_area).two_views(x, self._rng)
        optimizer_step(self.optim, self.moco.loss(a, b))

    def learn(self, x: Inputs, y: Targets) -> None:
        if self.n_feature_rounds < 0 or self.training_rounds < self.n_feature_rounds:
            self._rng = self.seed.child("views", self.training_rounds).torch()
            fit_input_scaling(self.moco.key_network, to_tensor(x))
            self.train(x, y)
        else:
            self.end_round()
        self.classifier.learn(self.rows(x), self._task.targets(y))

    def rows(self, x: Inputs) -> np.ndarray:
        """Return the classifier's input features."""
        found = extract_features(self.model, x)
        if found.shape[1] > self.max_features:
            found = found @ to_device(
                torch.randn(found.shape[1], self.max_features, generator=self.seed.child("fewer").torch())
            )
        return to_numpy(normalize(found, dim=1))

    def predict(self, x: Inputs) -> Answers:
        return self._task.decode(self.classifier.outputs(self.rows(x)))


for _kind in ("hat", "arf", "nb"):
    register("method", f"moco-{_kind}")(partial(MoCoStreaming, classifier_kind=_kind))
