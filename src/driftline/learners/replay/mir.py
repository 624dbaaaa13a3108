"""MIR: maximally interfered retrieval. Experience replay of the samples that the latest errors would harm most.

Aljundi et al., "Online Continual Learning with Maximally Interfered Retrieval", NeurIPS 2019; for refinement: Lin et
al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022. Of `n_candidates` random samples per
buffer those are replayed that rank first by

    mir             how much their loss grows in a virtual model, a copy that is fine-tuned on the latest errors alone
    maxloss         their loss in the virtual model
    reverse, before-loss   the paper's ablations: the loss grows least; the loss is highest in the present model

Departs from the reference code, where it contradicts the paper or itself: the virtual model is trained on the latest
errors (there: on those of the step before), with the same learning rate and once for both buffers. The virtual
model is trained without penalty and replay. `n_neighbors` stands for the reference's index of nearest samples, with
simpler vectors (`driftline.learners.replay.selection.NearestInputs`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from torch import nn

from driftline.learners.replay.base import RefinementLearner
from driftline.learners.replay.memory import Pair, ReplayMemory, ReplayMode
from driftline.learners.replay.selection import (
    NEEDS_CURRENT,
    NEEDS_VIRTUAL,
    NearestInputs,
    Ranking,
    per_sample_losses,
    rank_for_replay,
)
from driftline.learners.settings import Count, CountOrZero, Fraction, NonNegative
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.mac_counter import mac_counter_of
from driftline.types import Inputs, JsonObject, Network, Samples, Targets, take_rows


@register("method", "mir")
@dataclass
class MIR(RefinementLearner):
    """Experience replay of the samples that interfere most with the latest errors."""

    replay_every: Count = 1  # steps from one replay to the next; the first step never has one
    replay_size: Count = 32  # samples replayed at a time
    upstream_fraction: Fraction = 0.5  # share of replayed samples from upstream data; the others are earlier errors
    replay_mode: ReplayMode = "mixed"  # replay together with the errors, or before them
    ranking: Ranking = "mir"  # by the increase of the loss through a virtual update, or by the loss itself
    n_candidates: Count = 256  # number of candidates from each buffer
    n_neighbors: CountOrZero = 0  # candidates are this many nearest samples of each error; 0: random ones
    virtual_lr: NonNegative | None = None  # learning rate of the virtual update; None: `lr`
    virtual_epochs: Count = 1  # epochs of the virtual update

    transient = frozenset({"_nearest_inputs"})
    cost_free = frozenset({"virtual_lr"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.memory = ReplayMemory(upstream, self.replay_every, self.replay_size, self.upstream_fraction)
        if self.n_neighbors:
            self._nearest_inputs = NearestInputs(None if upstream is None else upstream.x)

    def fine_tune(self, x: Inputs, y: Targets, seed: Seed) -> None:
        replayed = self.replayed(x, y, seed.child("recall"))
        self.memory.fine_tune(self, (x, y), replayed, self.replay_mode, seed)

    def replayed(self, x: Inputs, y: Targets, seed: Seed) -> list[Pair]:
        """Return the samples of each buffer that rank first among its candidates; none if no replay is due."""
        if not (buffers := self.memory.due(self.training_rounds)):
            return []
        virtual = self.virtual_update(x, y, seed.child("virtual")) if self.ranking in NEEDS_VIRTUAL else None
        chosen = []
        for name, (buffer, n) in buffers.items():
            near = self._nearest_inputs.nearest(x, name, buffer, self.n_neighbors) if self.n_neighbors else None
            rows = seed.child(name).numpy().permutation(np.arange(len(buffer)) if near is None else near)
            inputs, labels = take_rows(buffer.x, rows[: self.n_candidates]), buffer.y[rows[: self.n_candidates]]
            first = self.top_ranked(virtual, inputs, labels, n)
            if len(first):
                chosen.append((take_rows(inputs, first), labels[first]))
        return chosen

    def virtual_update(self, x: Inputs, y: Targets, seed: Seed) -> nn.Module:
        """Return the model after fine-tuning on these errors alone, without penalty."""
        settings: JsonObject = {field.name: getattr(self, field.name) for field in fields(RefinementLearner)}
        settings |= {"lr": self.lr if self.virtual_lr is None else self.virtual_lr, "epochs": self.virtual_epochs}
        settings |= {"penalty": "none", "lr_schedule": "constant", "warmup_updates": 0}
        twin = RefinementLearner(**settings)
        twin.prepare(copy.deepcopy(self.model), self._task)
        twin.training_rounds = self.training_rounds
        twin.train_epochs(x, y, seed)
        model: nn.Module = twin.model
        return model

    def top_ranked(self, virtual: nn.Module | None, x: Inputs, y: Targets, n: int) -> np.ndarray:
        """Return the rows of n candidates to replay; only losses that the ranking needs are computed.

        Candidates that are not ranked before the compute of the run is spent are not replayed.
        """
        networks = [*([self.model] if self.ranking in NEEDS_CURRENT else []), *([] if virtual is None else [virtual])]
        batch = 64 if mac_counter_of(self.model).allowance is None else self.batch
        losses = per_sample_losses(networks, self._task, x, y, batch)
        return rank_for_replay(self.ranking, losses[0], losses[-1], n)


register("method", "mir+l2")(partial(MIR, penalty="l2"))
register("method", "mir+ewc")(partial(MIR, penalty="ewc", penalty_weight=10.0))
register("method", "maxloss")(partial(MIR, ranking="maxloss"))
register("method", "maxloss+l2")(partial(MIR, ranking="maxloss", penalty="l2"))
register("method", "maxloss+ewc")(partial(MIR, ranking="maxloss", penalty="ewc", penalty_weight=10.0))
