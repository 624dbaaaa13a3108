"""ETA: adapt to answers that are sure and new.

Niu et al., "Efficient Test-Time Model Adaptation without Forgetting", ICML 2022; ETA is EATA without its regulariser.
A sample is kept if the entropy H of its answer p is below E0 = entropy * ln(classes) and |cos(m, p)| < margin, where m
is the mean answer so far (no such test before there is one). Loss: the mean over kept samples of exp(E0 - H) H, the
weight exp(E0 - H) held fixed. If none is kept there is no update. m <- 0.9 m + 0.1 (mean p of those kept).

The paper makes m a plain average over all that was seen; this is its code, and that of the RDumb study. The margin of
0.05 is for 1,000 classes; with few classes answers are rarely that far from the mean, and 0.1 is in use for 100
classes, 0.4 for 10: without a setting, that of the nearest number of classes is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from driftline.learners.limits import POSITIVE, Limit
from driftline.learners.norm_adapt import Sharpened, entropy
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Samples

MEMORY = 0.9  # how much of the mean answer so far is kept


@register("method", "eta")
@dataclass
class ETA(Sharpened):
    """Minimise the entropy of answers that are sure already and unlike the usual one."""

    lr: float = 2.5e-4
    entropy: float = 0.4  # the share of the largest entropy below which an answer is sure
    margin: float | None = None  # how much an answer may point the way of the mean one; by the number of classes

    limits: ClassVar[Mapping[str, Limit]] = {**Sharpened.limits, "entropy": POSITIVE, "margin": POSITIVE}

    transient = frozenset({"_margin", "_sure"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._sure = self.entropy * math.log(task.width)
        self._margin = by_classes(task.width, 0.4, 0.1, 0.05) if self.margin is None else self.margin
        self.mean: Tensor | None = None

    def loss(self, outputs: Tensor) -> Tensor | None:
        unsureness = entropy(outputs)
        p = outputs.detach().softmax(dim=1)
        kept = unsureness.detach() < self._sure
        if self.mean is not None:
            kept &= cosine_similarity(self.mean[None], p).abs() < self._margin
        if not kept.any():
            return None
        mean = p[kept].mean(dim=0)
        self.mean = mean if self.mean is None else MEMORY * self.mean + (1 - MEMORY) * mean
        unsureness = unsureness[kept]
        return (torch.exp(self._sure - unsureness.detach()) * unsureness).mean()


def by_classes(classes: int, ten: float, hundred: float, thousand: float) -> float:
    """The setting that is in use for the nearest of 10, 100 and 1,000 classes, in ratios.

    >>> [by_classes(classes, 1, 2, 3) for classes in (2, 10, 31, 32, 200, 316, 317, 1000)]
    [1, 1, 1, 2, 2, 2, 3, 3]
    """
    return (ten, hundred, thousand)[min(2, max(0, round(math.log10(classes)) - 1))]
