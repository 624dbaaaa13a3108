"""Offline refinement: one training at the end on all errors, an upper bound for refinement without a stream.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022. The paper's reference keeps
the best epoch on the very samples that measure generalization; this keeps the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from driftline.learners.buffers import UniqueBuffer
from driftline.learners.replay.base import RefinementLearner
from driftline.learners.settings import Count
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, Targets, concat_rows, take_rows


@register("method", "offline")
@dataclass
class Offline(RefinementLearner):
    """One training at the end, on all errors and as many upstream samples.

    An input with several errors counts once. A penalty acts as in the first step of a stream.
    """

    batch: Count = 64
    epochs: Count = 30

    quick: ClassVar[Mapping[str, str]] = {}

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.buffer = UniqueBuffer()

    def learn(self, x: Inputs, y: Targets) -> None:
        self.buffer.add(x, y)

    def finish(self) -> None:
        if not len(self.buffer):
            return
        x, y = self.buffer.x, self.buffer.y
        if self._upstream is not None:
            rows = self.seed.child("upstream").numpy().permutation(len(self._upstream))[: len(y)]
            x, y = concat_rows([x, take_rows(self._upstream.x, rows)]), concat_rows([y, self._upstream.y[rows]])
        self.refine(x, y, self.seed.child("offline"))
