"""OLTR: features enriched by a memory of class centroids, and a cosine classifier.

Liu et al., "Large-Scale Long-Tailed Recognition in an Open World", CVPR 2019, as Wallingford et al., 2020 (NED) use it:
4 epochs every 200 labels for the first 10,000, then every 5,000; learning rate 0.1 for the classifier and the memory,
0.01 for the features. With v the features of a sample and c_i the centroid of class i:

    o = softmax(A v)                 how much of each centroid to recall
    e = tanh(B v)                    which features to recall (the concept selector)
    g = min_i |v - c_i|              how far it is from everything remembered (reachability)
    m = (v + e * sum_i o_i c_i) / g
    logit_i = scale * |m|^2 / (1 + |m|^2) * cos(m, w_i)

The first stage, features by themselves, is the pretraining of the network. The memory is written at the start of
each training: the mean features of all labelled samples, by the present network. Until the first training the
pretrained network answers. Classes without a centroid are neither recalled nor near.

What departs: features are the vectors that a network hands to its last layer, not maps, so there is nothing for the
modulated attention to look at; centroids are means and not trained by a margin loss; rows of the classifier start
as the pretrained ones, for novel classes at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softmax

from driftline.learners.settings import Count, NonNegative, Positive, check_settings
from driftline.learners.standard_training import StandardTraining
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.encode import embed, last_linear, only_features
from driftline.training.fit import measure_inputs
from driftline.training.meter import meter_of
from driftline.training.torch_model import torch_model
from driftline.types import Samples

NEAREST = 1e-6  # a sample that is its class's centroid is not infinitely reachable


@register("method", "oltr")
@dataclass
class OLTR(StandardTraining):
    """OLTR: features enriched by a memory of class centroids, with a cosine classifier."""

    lr: NonNegative = 0.1  # of the classifier and of what recalls
    feature_lr: NonNegative = 0.01
    early: int = 500  # among the first `early` labels (NED: 10,000 of 90,000),
    early_every: Count = 50  # train every `early_every` (NED: 200)
    scale: Positive = 16.0

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        self.must_suit(model)
        check_settings(self)
        self.recall = Recall(last_linear(model), self.scale, self.seed.child("recall"))
        super().prepare(model, task, upstream)
        self.recall.draw_rows(~self.trained, self.seed.child("rows"))

    def to_train(self) -> list[Any]:
        features = {"params": list(self.model.parameters()), "lr": self.feature_lr}
        return [features, {"params": list(self.recall.parameters())}]

    def rest(self) -> int:
        if self.every == 0 or self.rhythm != "every":
            return super().rest()
        return self.last + (self.early_every if self.last < self.early else self.every) - self.heard

    def lesson(self) -> None:
        measure_inputs(self.model, torch_model(self.model).encode(self.memory.x))
        self.recall.remember(embed(self.model, self.memory.x), torch.as_tensor(self.memory.y))
        super().lesson()

    def objective(self, x: Tensor, y: Tensor) -> Tensor:
        cost = len(y) * self.recall.macs
        meter_of(self.model).charge(forward=cost, backward=2 * cost)
        return self.loss(self.recall(only_features(self.model, x)), y)

    def raw(self, x: Any) -> np.ndarray:
        if self.lessons == 0:
            return torch_model(self.model).predict(x)
        features = embed(self.model, x)
        meter_of(self.model).charge(forward=len(features) * self.recall.macs)
        with torch.no_grad():
            logits: np.ndarray = self.recall(features).numpy()
        return logits


class Recall(nn.Module):
    """A memory of class centroids and a cosine classifier: features to logits."""

    centroids: Tensor
    held: Tensor

    def __init__(self, head: nn.Linear, scale: float, seed: Seed) -> None:
        super().__init__()
        classes, features = head.weight.shape
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed.value % 2**63)
            self.how_much = nn.Linear(features, classes)
            self.which = nn.Linear(features, features)
        self.rows = nn.Parameter(head.weight.detach().clone())
        self.scale = scale
        self.register_buffer("centroids", torch.zeros(classes, features))
        self.register_buffer("held", torch.zeros(classes, dtype=torch.bool))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one sample: attention, selector, centroids, distances and rows."""
        classes, features = self.rows.shape
        return features * (4 * classes + features)

    @torch.no_grad()
    def draw_rows(self, which: np.ndarray, seed: Seed) -> None:
        """Draw random rows for these classes: a direction cannot start at zero."""
        reach = self.rows.shape[1] ** -0.5
        drawn = (2 * torch.rand(self.rows.shape, generator=seed.torch()) - 1) * reach
        self.rows[torch.from_numpy(which)] = drawn[torch.from_numpy(which)]

    @torch.no_grad()
    def remember(self, features: Tensor, y: Tensor) -> None:
        """Store the mean features of each class with samples."""
        counts = torch.bincount(y, minlength=len(self.centroids))
        sums = torch.zeros_like(self.centroids).index_add_(0, y, features)
        self.centroids.copy_(sums / counts.clamp(min=1)[:, None])
        self.held.copy_(counts > 0)

    def forward(self, direct: Tensor) -> Tensor:
        shares = softmax(self.how_much(direct).masked_fill(~self.held, -torch.inf), dim=1)
        recalled = torch.tanh(self.which(direct)) * (shares @ self.centroids)
        # One sample by itself must be as far away as in a batch, so no short cut through a product of matrices.
        far = torch.cdist(direct, self.centroids[self.held], compute_mode="donot_use_mm_for_euclid_dist")
        reach = far.min(dim=1, keepdim=True).values
        meta = (direct + recalled) / reach.clamp(min=NEAREST)
        length = meta.norm(dim=1, keepdim=True)
        squashed = length**2 / (1 + length**2) * normalize(meta, dim=1)
        logits: Tensor = self.scale * squashed @ normalize(self.rows, dim=1).T
        return logits
