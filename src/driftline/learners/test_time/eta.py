"""ETA: entropy minimization on reliable, non-redundant samples (EATA without the Fisher penalty).

Niu et al., "Efficient Test-Time Model Adaptation without Forgetting", ICML 2022; ETA is EATA without its penalty.
A sample with probabilities p is selected if their entropy H is below E0 = entropy * ln(classes) and |cos(m, p)| <
margin, where m is the mean of p so far (no such test before there is one). Loss: the mean over selected samples of
exp(E0 - H) H, with constant weights exp(E0 - H). Without a selected sample there is no update. Then
m <- 0.9 m + 0.1 (mean p of the selected samples).

The paper makes m a plain average over all that was seen; this is its code, and that of the RDumb study. The margin of
0.05 is for 1,000 classes; with few classes answers are rarely that far from the mean, and 0.1 is in use for 100
classes, 0.4 for 10: without a setting, that of the nearest number of classes is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from driftline.io.serialization import Stateful
from driftline.learners.settings import Positive
from driftline.learners.test_time.base import NormAdapter, entropy
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Network, Samples

EMA_DECAY = 0.9  # of the moving average of probabilities


@register("method", "eta")
@dataclass
class ETA(NormAdapter):
    """ETA: entropy minimization on reliable, non-redundant samples."""

    entropy_fraction: Positive = 0.4  # samples below this share of the largest entropy are reliable
    similarity_margin: Positive | None = (
        None  # largest cosine with the mean probabilities; None: by the number of classes
    )

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.selection = SampleSelection(task.width, self.entropy_fraction, self.similarity_margin)

    def loss(self, outputs: Tensor) -> Tensor | None:
        return self.selection.loss(outputs)


class SampleSelection(Stateful):
    """Selects reliable, non-redundant samples, and keeps the moving average of their probabilities."""

    def __init__(self, classes: int, entropy_fraction: float, similarity_margin: float | None) -> None:
        self.max_entropy = entropy_fraction * math.log(classes)
        self.margin = default_for_classes(classes, 0.4, 0.1, 0.05) if similarity_margin is None else similarity_margin
        self.mean: Tensor | None = None

    def loss(self, outputs: Tensor) -> Tensor | None:
        """Return the weighted mean entropy of the selected samples; None without any."""
        entropies = entropy(outputs)
        p = outputs.detach().softmax(dim=1)
        selected = entropies.detach() < self.max_entropy
        if self.mean is not None:
            selected &= cosine_similarity(self.mean[None], p).abs() < self.margin
        if not selected.any():
            return None
        mean = p[selected].mean(dim=0)
        self.mean = mean if self.mean is None else EMA_DECAY * self.mean + (1 - EMA_DECAY) * mean
        entropies = entropies[selected]
        return (torch.exp(self.max_entropy - entropies.detach()) * entropies).mean()


def default_for_classes(classes: int, ten: float, hundred: float, thousand: float) -> float:
    """Return the usual setting for the nearest of 10, 100 and 1,000 classes, in ratios.

    >>> [default_for_classes(classes, 1, 2, 3) for classes in (2, 10, 31, 32, 200, 316, 317, 1000)]
    [1, 1, 1, 2, 2, 2, 3, 3]
    """
    return (ten, hundred, thousand)[min(2, max(0, round(math.log10(classes)) - 1))]
