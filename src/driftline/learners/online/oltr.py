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
each training: the mean features of all labeled samples, by the present network. Until the first training the
pretrained network answers. Classes without a centroid are neither recalled nor near.

What departs: features are the vectors that a network hands to its last layer, not maps, so there is nothing for the
modulated attention to look at; centroids are means and not trained by a margin loss; rows of the classifier start
as the pretrained ones, for novel classes at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softmax

from driftline.device import place, to_device, to_numpy
from driftline.learners.online.base import OnlineLearner
from driftline.learners.settings import Count, NonNegative, Positive, check_settings
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.cached_features import classifier_layer, extract_features, features_with_frozen_head
from driftline.training.fit import fit_input_scaling
from driftline.training.mac_counter import mac_counter_of
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, JsonObject, Network, Samples

MIN_DISTANCE = 1e-6  # a sample that is its class's centroid is not infinitely reachable


@register("method", "oltr")
@dataclass
class OLTR(OnlineLearner):
    """OLTR: features enriched by a memory of class centroids, with a cosine classifier."""

    lr: NonNegative = 0.1  # learning rate of the classifier and the memory
    feature_lr: NonNegative = 0.01  # learning rate of the feature extractor
    warmup_labels: int = 500  # number of first labels with `warmup_every` (NED: 10,000 of 90,000)
    warmup_every: Count = 50  # labels between trainings among the first (NED: 200)
    scale: Positive = 16.0  # scale of cosines

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        self.check_model(model)
        check_settings(self)
        self.centroid_memory = place(CentroidMemory(classifier_layer(model), self.scale, self.seed.child("recall")))
        super().prepare(model, task, upstream)
        self.centroid_memory.draw_rows(~self.known_classes, self.seed.child("rows"))

    def trainable_parameters(self) -> list[JsonObject]:
        features = {"params": list(self.model.parameters()), "lr": self.feature_lr}
        return [features, {"params": list(self.centroid_memory.parameters())}]

    def labels_until_training(self) -> int:
        if self.train_every == 0 or self.schedule != "every":
            return super().labels_until_training()
        at_training = self.labels.n_labels_at_training
        every = self.warmup_every if at_training < self.warmup_labels else self.train_every
        return at_training + every - self.labels.n_labels

    def train_on_buffer(self) -> None:
        fit_input_scaling(self.model, torch_model(self.model).encode(self.buffer.x))
        self.centroid_memory.write(
            extract_features(self.model, self.buffer.x), to_device(torch.as_tensor(self.buffer.y))
        )
        super().train_on_buffer()

    def training_loss(self, x: Tensor, y: Tensor) -> Tensor:
        cost = len(y) * self.centroid_memory.macs
        mac_counter_of(self.model).add(forward=cost, backward=2 * cost)
        return self.loss(self.centroid_memory(features_with_frozen_head(self.model, x)), y)

    def logits(self, x: Inputs) -> np.ndarray:
        if self.training_rounds == 0:
            return torch_model(self.model).predict(x)
        features = extract_features(self.model, x)
        mac_counter_of(self.model).add(forward=len(features) * self.centroid_memory.macs)
        with torch.no_grad():
            return to_numpy(self.centroid_memory(features))


class CentroidMemory(nn.Module):
    """A memory of class centroids and a cosine classifier: features to logits."""

    centroids: Tensor
    has_centroid: Tensor

    def __init__(self, head: nn.Linear, scale: float, seed: Seed) -> None:
        super().__init__()
        classes, features = head.weight.shape
        with seed.as_torch_default():
            self.hallucinator = nn.Linear(features, classes)
            self.selector = nn.Linear(features, features)
        self.rows = nn.Parameter(head.weight.detach().clone())
        self.scale = scale
        self.register_buffer("centroids", torch.zeros(classes, features))
        self.register_buffer("has_centroid", torch.zeros(classes, dtype=torch.bool))

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
        self.rows[torch.from_numpy(which)] = to_device(drawn[torch.from_numpy(which)])

    @torch.no_grad()
    def write(self, features: Tensor, y: Tensor) -> None:
        """Store the mean features of each class with samples."""
        counts = torch.bincount(y, minlength=len(self.centroids))
        sums = torch.zeros_like(self.centroids).index_add_(0, y, features.to(self.centroids))
        self.centroids.copy_(sums / counts.clamp(min=1)[:, None])
        self.has_centroid.copy_(counts > 0)

    def forward(self, features: Tensor) -> Tensor:
        features = features.to(self.centroids)  # from half precision
        shares = softmax(self.hallucinator(features).masked_fill(~self.has_centroid, -torch.inf), dim=1)
        recalled = torch.tanh(self.selector(features)) * (shares @ self.centroids)
        # One sample by itself must be as far away as in a batch, so no short cut through a product of matrices.
        far = torch.cdist(features, self.centroids[self.has_centroid], compute_mode="donot_use_mm_for_euclid_dist")
        reach = far.min(dim=1, keepdim=True).values
        meta = (features + recalled) / reach.clamp(min=MIN_DISTANCE)
        length = meta.norm(dim=1, keepdim=True)
        squashed = length**2 / (1 + length**2) * normalize(meta, dim=1)
        logits: Tensor = self.scale * squashed @ normalize(self.rows, dim=1).T
        return logits
