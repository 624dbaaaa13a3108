"""EATA: ETA with a Fisher penalty towards the source weights.

Niu et al., "Efficient Test-Time Model Adaptation without Forgetting", ICML 2022:

    loss = ETA's + strength * sum_i F_i (theta_i - start_i)^2
    F_i = mean over batches of (d/d theta_i of the batch's mean cross-entropy with its own best guesses)^2

The square is that of a mean gradient, about 64 times smaller than the Fisher information per sample; the strength makes
up for it. 2,000 (the default for about 1,000 classes) was chosen with batches of 64, and 1 is in use for 10 and 100. F
is measured before the first update, on `fisher_images` images rounded up to whole batches.

Which images: the authors take clean validation images, the RDumb study the first of the test stream, which it then
starts again. Here the stream is seen once. By default F comes from upstream samples, if there are any, without their
labels: unlike the other methods this one then needs source data. With `fisher_from="stream"`, or without upstream
samples, the first images of the stream are answered by batch statistics alone while F is measured on them, batch by
batch as they come, and adaptation begins after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from driftline.learners.settings import Count, NonNegative, Positive
from driftline.learners.test_time.base import NormAdapter
from driftline.learners.test_time.eta import SampleSelection, default_for_classes
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.regularization import flatten, gradient, quadratic_penalty
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network, Samples, take_rows

FISHER_BATCH = 64


@register("method", "eata")
@dataclass
class EATA(NormAdapter):
    """EATA: ETA with a Fisher penalty towards the source weights."""

    entropy_fraction: Positive = 0.4  # samples below this share of the largest entropy are reliable
    similarity_margin: Positive | None = (
        None  # largest cosine with the mean probabilities; None: by the number of classes
    )
    penalty_weight: NonNegative | None = None  # weight of the penalty; None: 2,000 for about 1,000 classes, 1 for fewer
    fisher_from: Literal["upstream", "stream"] = "upstream"
    """Samples for the Fisher information: upstream ones, or the first of the stream."""
    fisher_images: Count = 2000  # number of samples for the Fisher information

    transient = frozenset({"_anchor", "_penalty_weight", "_upstream"})
    cost_free = frozenset({"penalty_weight"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.selection = SampleSelection(task.width, self.entropy_fraction, self.similarity_margin)
        self._penalty_weight = (
            default_for_classes(task.width, 1.0, 1.0, 2000.0) if self.penalty_weight is None else self.penalty_weight
        )
        self._anchor = flatten(self._weights).detach()
        self._upstream = upstream.x if upstream is not None and self.fisher_from == "upstream" else None
        self.fisher_sum = torch.zeros_like(self._anchor)
        self.n_fisher_batches = 0
        self.n_fisher_images = 0

    def adapt_batch(self, x: Tensor) -> Tensor:
        if self.n_fisher_images == 0 and self._upstream is not None:
            self._measure_fisher_upstream(self._upstream)
        if self._upstream is None and self.n_fisher_images < self.fisher_images:
            outputs: Tensor = self.model(x)
            self._measure_fisher(outputs)
            return outputs.detach()
        return super().adapt_batch(x)

    def loss(self, outputs: Tensor) -> Tensor | None:
        loss = self.selection.loss(outputs)
        if loss is None:
            return None
        fisher = self.fisher_sum / self.n_fisher_batches
        return loss + self._penalty_weight * quadratic_penalty(flatten(self._weights), self._anchor, fisher)

    def _measure_fisher_upstream(self, x: Inputs) -> None:
        """Measure F on upstream samples drawn without replacement."""
        wanted = -(-self.fisher_images // FISHER_BATCH) * FISHER_BATCH
        rows = self.seed.child("fisher").numpy().permutation(len(x))[:wanted]
        inputs = torch_model(self.model).encode(take_rows(x, rows))
        for part in torch.arange(len(inputs)).tensor_split(-(-len(inputs) // FISHER_BATCH)):
            self._measure_fisher(self.model(to_float_batch(inputs[part])))

    def _measure_fisher(self, outputs: Tensor) -> None:
        grad = gradient(cross_entropy(outputs, outputs.argmax(dim=1)), self._weights)
        self.fisher_sum = self.fisher_sum + grad.square()
        self.n_fisher_batches += 1
        self.n_fisher_images += len(outputs)
