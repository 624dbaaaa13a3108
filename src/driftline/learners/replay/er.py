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

from driftline.learners.replay.base import RefinementLearner
from driftline.learners.replay.memory import Pair, ReplayMemory, ReplayMode
from driftline.learners.settings import Count, Fraction
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, Targets, take_rows


@register("method", "er")
@dataclass
class ER(RefinementLearner):
    """Experience replay: fine-tuning on the latest errors and random samples of earlier ones."""

    replay_every: Count = 1  # steps from one replay to the next; the first step never has one
    replay_size: Count = 32  # samples replayed at a time
    upstream_fraction: Fraction = 0.5  # share of replayed samples from upstream data; the others are earlier errors
    replay_mode: ReplayMode = "mixed"  # replay together with the errors, or before them

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.memory = ReplayMemory(upstream, self.replay_every, self.replay_size, self.upstream_fraction)

    def fine_tune(self, x: Inputs, y: Targets, seed: Seed) -> None:
        self.memory.fine_tune(self, (x, y), self.replayed(seed.child("recall")), self.replay_mode, seed)

    def replayed(self, seed: Seed) -> list[Pair]:
        """Return random samples of each buffer; none if no replay is due."""
        chosen = []
        for name, (buffer, n) in self.memory.due(self.training_rounds).items():
            rows = seed.child(name).numpy().permutation(len(buffer))[:n]
            chosen.append((take_rows(buffer.x, rows), buffer.y[rows]))
        return chosen


register("method", "er+l2")(partial(ER, penalty="l2"))
register("method", "er+ewc")(partial(ER, penalty="ewc", penalty_weight=10.0))
