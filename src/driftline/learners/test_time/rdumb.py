"""RDumb: ETA with periodic reset.

Press et al., "RDumb: A simple approach that questions our progress in continual test-time adaptation", NeurIPS 2023.
Before the answers of steps 0, N, 2N, ... weights, momentum and the mean answer are as they were at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from driftline.learners.periodic_reset import Snapshot
from driftline.learners.settings import Count, Positive
from driftline.learners.test_time.base import NormAdapter
from driftline.learners.test_time.eta import SampleSelection
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Answers, Inputs, Network, Samples


@register("method", "rdumb")
@dataclass
class RDumb(NormAdapter):
    """RDumb: ETA, reset every `reset_every` steps."""

    entropy_fraction: Positive = 0.4  # samples below this share of the largest entropy are reliable
    similarity_margin: Positive | None = (
        None  # largest cosine with the mean probabilities; None: by the number of classes
    )
    reset_every: Count = 1000  # steps between resets

    quick: ClassVar[Mapping[str, str]] = {**NormAdapter.quick, "reset_every": "reset_every"}

    transient = frozenset({"_snapshot"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.selection = SampleSelection(task.width, self.entropy_fraction, self.similarity_margin)
        self.steps = 0
        self._snapshot: Snapshot | None = None  # it is among what a reset leaves alone
        self._snapshot = Snapshot(self)

    def answer(self, x: Inputs) -> Answers:
        assert self._snapshot is not None
        done = self.steps
        if done % self.reset_every == 0:
            self._snapshot.restore_into(self)
        self.steps = done + 1
        return super().answer(x)

    def loss(self, outputs: Tensor) -> Tensor | None:
        return self.selection.loss(outputs)
