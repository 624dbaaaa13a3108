"""ER: experience replay. New errors are trained on together with random samples from two buffers.

Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019; for refinement: Lin et al., "On Continual
Model Refinement in Out-of-Distribution Data Streams", ACL 2022.

`replay_size` samples are replayed, a share of them from the upstream samples and the others from the errors so far,
each input once, whether or not it was corrected since. A buffer with fewer gives what it has. Without upstream samples
that buffer is empty, and `upstream_fraction=0` gives its share to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from driftline.learners.replay.refinement import Refinement
from driftline.learners.replay.selection import UniqueBuffer, split_replay_size
from driftline.learners.settings import Count, Fraction
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, Targets, concat_rows, take_rows

Draw = Callable[[str, Any, int], tuple[Inputs, Targets]]
"""From the name of a buffer, the buffer and a number of samples to inputs and labels."""


@register("method", "er")
@dataclass
class ER(Refinement):
    """Experience replay: fine-tuning on the latest errors and random samples of earlier ones."""

    replay_every: Count = 1  # steps from one replay to the next; the first step never has one
    replay_size: Count = 32  # samples replayed at a time
    upstream_fraction: Fraction = 0.5  # share of replayed samples from upstream data; the others are earlier errors
    replay_mode: Literal["mixed", "two-stage"] = (
        "mixed"  # errors and replayed samples together, or the replayed ones first
    )

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.buffer = UniqueBuffer()

    def fine_tune(self, x: Inputs, y: Targets, seed: Seed) -> None:
        old = self.replayed(x, y, seed.child("recall"))
        if old and self.replay_mode == "two-stage":
            self.train_epochs(
                concat_rows([inputs for inputs, _ in old]),
                concat_rows([labels for _, labels in old]),
                seed.child("replay"),
            )
            old = []
        self.train_epochs(
            concat_rows([x, *(inputs for inputs, _ in old)]), concat_rows([y, *(labels for _, labels in old)]), seed
        )
        self.buffer.add(x, y)

    def replayed(self, x: Inputs, y: Targets, seed: Seed) -> list[tuple[Inputs, Targets]]:
        """Return samples of each buffer to train on together with these errors; none if no replay is due."""
        if self.training_rounds == 0 or self.training_rounds % self.replay_every:
            return []
        draw, (upstream, online) = self.sampler(x, y, seed), split_replay_size(self.replay_size, self.upstream_fraction)
        buffers = (("upstream", self._upstream, upstream), ("online", self.buffer, online))
        return [draw(name, buffer, n) for name, buffer, n in buffers if buffer is not None and len(buffer) and n]

    def sampler(self, x: Inputs, y: Targets, seed: Seed) -> Draw:
        """Return a function that draws from a buffer, here at random."""

        def draw(name: str, buffer: Any, n: int) -> tuple[Inputs, Targets]:
            rows = seed.child(name).numpy().permutation(np.arange(len(buffer)))[:n]
            return take_rows(buffer.x, rows), buffer.y[rows]

        return draw


register("method", "er+l2")(partial(ER, penalty="l2"))
register("method", "er+ewc")(partial(ER, penalty="ewc", penalty_weight=10.0))
