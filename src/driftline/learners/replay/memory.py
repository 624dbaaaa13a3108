"""Two buffers to replay from: upstream samples, and the errors so far, each input once."""

from __future__ import annotations

from typing import Literal

from driftline.io.serialization import Stateful
from driftline.learners.buffers import Buffer, UniqueBuffer
from driftline.learners.replay.base import RefinementLearner
from driftline.seeds import Seed
from driftline.types import Inputs, Samples, Targets, concat_rows

Pair = tuple[Inputs, Targets]
ReplayMode = Literal["mixed", "two-stage"]


class ReplayMemory(Stateful):
    """Upstream samples and errors, and how many of each to replay."""

    transient = frozenset({"_upstream"})

    def __init__(self, upstream: Samples | None, every: int, size: int, upstream_fraction: float) -> None:
        self._upstream = upstream
        self.errors = UniqueBuffer()
        self.every, self.size, self.upstream_fraction = every, size, upstream_fraction

    def due(self, training_rounds: int) -> dict[str, tuple[Buffer, int]]:
        """Return each buffer with the number of samples to replay from it now; nothing if no replay is due."""
        if training_rounds == 0 or training_rounds % self.every:
            return {}
        n_upstream = round(self.size * self.upstream_fraction)
        buffers = {"upstream": (self._upstream, n_upstream), "online": (self.errors, self.size - n_upstream)}
        return {name: (buffer, n) for name, (buffer, n) in buffers.items() if buffer is not None and len(buffer) and n}

    def fine_tune(
        self, learner: RefinementLearner, new: Pair, replayed: list[Pair], mode: ReplayMode, seed: Seed
    ) -> None:
        """Train a learner on new errors together with replayed samples, or after them; then store the errors."""
        if replayed and mode == "two-stage":
            learner.train_epochs(*_joined(replayed), seed.child("replay"))
            replayed = []
        learner.train_epochs(*_joined([new, *replayed]), seed)
        self.errors.add(*new)


def _joined(pairs: list[Pair]) -> Pair:
    """Return inputs and labels of all pairs."""
    return concat_rows([x for x, _ in pairs]), concat_rows([y for _, y in pairs])
