"""ER: experience replay. New errors are trained on together with random samples from two buffers.

Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019; for refinement: Lin et al., "On Continual
Model Refinement in Out-of-Distribution Data Streams", ACL 2022.

`replay_size` samples are replayed, a share of them from the upstream samples and the others from the errors so far,
each input once, whether or not it was corrected since. A buffer with fewer gives what it has. Without upstream samples
that buffer is empty, and `upstream_fraction=0` gives its share to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from driftline.learners.buffers import Buffer, UniqueBuffer
from driftline.learners.replay.base import RefinementLearner
from driftline.learners.settings import Count, Fraction
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, Targets, concat_rows, take_rows

Pair = tuple[Inputs, Targets]


@register("method", "er")
@dataclass
class ER(RefinementLearner):
    """Experience replay: fine-tuning on the latest errors and random samples of earlier ones."""

    replay_every: Count = 1  # steps from one replay to the next; the first step never has one
    replay_size: Count = 32  # samples replayed at a time
    upstream_fraction: Fraction = 0.5  # share of replayed samples from upstream data; the others are earlier errors
    replay_mode: Literal["mixed", "two-stage"] = "mixed"  # replay together with the errors, or before them

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.buffer = UniqueBuffer()

    def fine_tune(self, x: Inputs, y: Targets, seed: Seed) -> None:
        old = self.replayed(x, y, seed.child("recall"))
        if old and self.replay_mode == "two-stage":
            self.train_epochs(*joined(old), seed.child("replay"))
            old = []
        self.train_epochs(*joined([(x, y), *old]), seed)
        self.buffer.add(x, y)

    def replayed(self, x: Inputs, y: Targets, seed: Seed) -> list[Pair]:
        """Return samples of each buffer to train on together with these errors; none if no replay is due."""
        if self.training_rounds == 0 or self.training_rounds % self.replay_every:
            return []
        n_upstream = round(self.replay_size * self.upstream_fraction)
        buffers = {"upstream": (self._upstream, n_upstream), "online": (self.buffer, self.replay_size - n_upstream)}
        some = {name: (buffer, n) for name, (buffer, n) in buffers.items() if buffer is not None and len(buffer) and n}
        return self.select(some, x, y, seed)

    def select(self, buffers: dict[str, tuple[Buffer, int]], x: Inputs, y: Targets, seed: Seed) -> list[Pair]:
        """Return n samples of each buffer, here at random."""
        rows = {name: seed.child(name).numpy().permutation(len(buffer))[:n] for name, (buffer, n) in buffers.items()}
        return [(take_rows(buffer.x, rows[name]), buffer.y[rows[name]]) for name, (buffer, _) in buffers.items()]


def joined(pairs: list[Pair]) -> Pair:
    """Return inputs and labels of all pairs."""
    return concat_rows([x for x, _ in pairs]), concat_rows([y for _, y in pairs])


register("method", "er+l2")(partial(ER, penalty="l2"))
register("method", "er+ewc")(partial(ER, penalty="ewc", penalty_weight=10.0))
