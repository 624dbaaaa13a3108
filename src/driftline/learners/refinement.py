"""Continual model refinement: mend the errors of each episode without breaking what worked.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022. Each method is fine-tuning on
the latest errors E_t, with a penalty, replayed samples R_t, both or neither:

    none            loss(E_t + R_t)
    l2              + strength * sum_i (theta_i - anchor_i)^2,         anchor = the weights at the start of the episode
    ewc             + strength / 2 * sum_i F_i (theta_i - anchor_i)^2, anchor = the weights after the last episode,
                      F <- F_new + decay * F from its errors; no penalty in the first episode
    er              R_t at random
    mir             R_t = the samples whose loss grows most in a virtual model, a copy of the present one that is
                      fine-tuned on E_t (Aljundi et al., NeurIPS 2019)
    maxloss         R_t = those of the highest loss in the virtual model
    reverse, before-loss   the paper's ablations: the loss grows least; the loss is highest in the present model

R_t has `size` samples, by halves from the upstream memory M_u, which is the model's training data, and the online
memory M_o, which is all errors so far, each input once. MIR and its kin choose among `candidates` random ones per
memory. A memory with fewer gives what it has; without upstream data M_u is empty, and `upstream_share=0` gives its half
to M_o. Episodes are lessons: an episode without errors trains nothing, and does not count towards `every` either. M_o
keeps what was wrong at its time, whether or not it was mended.

As in the reference code, one optimiser serves the whole stream. Departs from that code, where it contradicts the paper
or itself: the virtual model is trained on E_t (there: on the lesson before), with the same learning rate and once for
both memories; the loss is a mean, not a sum, the learning rate constant, and gradients are not clipped unless `clip`
says so, so that its strengths do not carry over; Fisher information is divided by n (there: n - 1), and `decay` counts
once. The virtual model and F_new know neither penalty nor R_t. Weight decay is Adam's own, not AdamW's. `neighbours`
stands for the reference's index of nearest samples, with simpler vectors (`driftline.training.replay.Likeness`).
Strengths are those of our prototype on digits; tune them.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from driftline.errors import UserError, unknown
from driftline.learners.trained import Trained
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training import replay as memories
from driftline.training.penalties import FisherToStart, L2ToStart, fisher, flat, trainable
from driftline.training.replay import NEEDS_PRESENT, NEEDS_VIRTUAL, Likeness, Memory, Ranking, ranked
from driftline.types import Reveal, Samples, join, take

Penalty = Literal["none", "l2", "ewc"]
Replay = Literal["none", "er"] | Ranking
Tuning = Literal["mixed", "two-stage"]
NOTHING = 1e-20  # Fisher information below this holds no weight; as it decays on, products of it slow a processor down


@dataclass
class InEpochs(Trained):
    """Trains in epochs, with one optimiser for the whole stream."""

    batch: int = 8
    updates: int = 0  # a lesson ends after so many at the latest; 0: when its epochs are over
    epochs: int = 10
    clip: float | None = None  # the longest gradient; None: any length

    requires = "network"
    sees: ClassVar[Reveal] = Reveal.ERRORS

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        self.must_be_sound()
        super().prepare(model, task, upstream)
        self._upstream = upstream

    def must_be_sound(self) -> None:
        """Refuse settings that mean nothing."""
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: refining needs 1 or more")
        if self.updates < 0 or (self.clip is not None and self.clip <= 0):
            raise UserError(f"updates={self.updates} and clip={self.clip}: neither can be negative, nor clip zero")

    def new_optimizer(self) -> None:
        super().new_optimizer()
        if self.clip is not None:
            self.descent.register_step_pre_hook(self._shorten)

    def _shorten(self, *_: Any) -> None:
        nn.utils.clip_grad_norm_(trainable(self.model), self.clip or math.inf)

    def refine(self, x: Any, y: Any, seed: Seed) -> None:
        """Some epochs over these samples, from the present weights and optimiser state."""
        how = {"epochs": self.epochs, "batch": self.batch, "most": self.updates}
        memories.train_epochs(self.model, self._task, x, y, self.update, seed=seed, **how)


@register("method", "cft")
@dataclass
class Refine(InEpochs):
    """Fine-tune on the latest errors; a penalty holds the weights back, replay repeats old samples, both if asked."""

    penalty: Penalty = "none"
    strength: float = 0.1  # of the penalty
    decay: float = 0.9  # ewc: how much of the Fisher information of earlier episodes is kept
    replay: Replay = "none"
    every: int = 1  # lessons from one replay to the next; the first lesson never has one
    size: int = 32  # samples replayed at a time
    upstream_share: float = 0.5  # of them from upstream data; the others are earlier errors
    candidates: int = 256  # from each memory, among which mir and its kin choose
    neighbours: int = 0  # candidates are so many nearest samples of each error; 0: random ones
    tuning: Tuning = "mixed"  # errors and replayed samples together, or the replayed ones first
    virtual_lr: float | None = None  # None: the same
    virtual_epochs: int = 1

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.anchor: Tensor | None = None
        self.importance: Tensor | None = None
        self.memory = Memory()
        if self.neighbours:
            self._likeness = Likeness(None if upstream is None else upstream.x)

    def must_be_sound(self) -> None:
        super().must_be_sound()
        for name, known in {"penalty": Penalty, "replay": Replay, "tuning": Tuning}.items():
            if getattr(self, name) not in (names := _names(known)):
                raise unknown(name, str(getattr(self, name)), names)
        for name, least in {"every": 1, "size": 1, "candidates": 1, "virtual_epochs": 1, "neighbours": 0}.items():
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)}: replay needs {least} or more")
        if not 0 <= self.upstream_share <= 1:
            raise UserError(f"upstream_share={self.upstream_share}: a share lies between 0 and 1")
        if self.strength < 0 or self.decay < 0:
            raise UserError(f"strength={self.strength} and decay={self.decay}: neither can be negative")

    def learn(self, x: Any, y: Any) -> None:
        seed = self.seed.child("lesson", self.lessons)
        if self.penalty == "l2":
            self.anchor = self.weights()
        repeated = self.recall(x, y, seed.child("recall"))
        if repeated and self.tuning == "two-stage":
            self.refine(join([old for old, _ in repeated]), join([old for _, old in repeated]), seed.child("replay"))
            repeated = []
        self.refine(join([x, *(old for old, _ in repeated)]), join([y, *(old for _, old in repeated)]), seed)
        if self.penalty == "ewc":
            new = fisher(self.model, self._task, x, y, labels="empirical", seed=seed.child("fisher"))
            kept = new if self.importance is None else new + self.decay * self.importance
            self.importance = kept.where(kept > NOTHING, 0.0)
            self.anchor = self.weights()
        else:
            self.anchor = None  # it is the next episode's to set
        if self.replay != "none":
            self.memory.add(x, y)
        self.lessons += 1

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        loss = super().loss(x, y)
        return loss if self.anchor is None else loss + self.penalty_term(self.anchor)

    def penalty_term(self, anchor: Tensor) -> Tensor:
        """Return the penalty on the present weights."""
        weights = flat(trainable(self.model))
        if self.importance is None:
            return L2ToStart(self.strength).term(weights, anchor)
        return FisherToStart(self.strength).term(weights, anchor, self.importance)

    def weights(self) -> Tensor:
        """A copy of the present weights, in one vector."""
        with torch.no_grad():
            return flat(trainable(self.model))

    def due(self) -> bool:
        """Whether something is replayed with the lesson at hand."""
        return self.replay != "none" and self.lessons > 0 and self.lessons % self.every == 0

    def recall(self, x: Any, y: Any, seed: Seed) -> list[tuple[Any, Any]]:
        """What is repeated along with these errors: inputs and labels from each memory that has some."""
        if not self.due():
            return []
        virtual = self.virtual(x, y, seed.child("virtual")) if self.replay in NEEDS_VIRTUAL else None
        upstream, online = memories.quotas(self.size, self.upstream_share)
        repeated = []
        for name, memory, quota in (("upstream", self._upstream, upstream), ("online", self.memory, online)):
            if memory is None or not len(memory) or not quota:
                continue
            rows = self.eligible(x, name, memory, quota, seed.child(name))
            found = take(memory.x, rows), memory.y[rows]
            if self.replay != "er":
                first = self.first(virtual, *found, quota)
                found = take(found[0], first), found[1][first]
            repeated.append(found)
        return repeated

    def virtual(self, x: Any, y: Any, seed: Seed) -> nn.Module:
        """What the model would become if it were fine-tuned on these errors alone."""
        lr = self.lr if self.virtual_lr is None else self.virtual_lr
        how: dict[str, Any] = {name: getattr(self, name) for name in ("batch", "weight_decay", "optimizer", "clip")}
        twin = InEpochs(lr=lr, epochs=self.virtual_epochs, updates=self.updates, **how)
        twin.model, twin._task = copy.deepcopy(self.model), self._task
        twin.new_optimizer()
        twin.refine(x, y, seed)
        model: nn.Module = twin.model
        return model

    def eligible(self, x: Any, name: str, memory: Any, quota: int, seed: Seed) -> np.ndarray:
        """Random rows of a memory, or of the neighbours of these errors in it: the candidates, or all that er takes."""
        most = quota if self.replay == "er" else self.candidates
        rows = self._likeness.nearest(x, name, memory, self.neighbours) if self.neighbours else np.arange(len(memory))
        return seed.numpy().permutation(rows)[:most]

    def first(self, virtual: nn.Module | None, x: Any, y: Any, n: int) -> np.ndarray:
        """The rows of n candidates that most need repeating; only losses that the ranking asks for are computed."""
        zeros = np.zeros(len(y))
        before = memories.losses(self.model, self._task, x, y) if self.replay in NEEDS_PRESENT else zeros
        after = zeros if virtual is None else memories.losses(virtual, self._task, x, y)
        return ranked(self.replay, before, after, n)  # type: ignore[arg-type]  # never called for none and er


@register("method", "offline")
@dataclass
class Offline(InEpochs):
    """Stay as deployed; at the end train once on all errors and as many upstream samples, a bound without a stream.

    An input that was wrong several times counts once. The paper's reference keeps the best epoch on the very samples
    that measure generalisation; this keeps the last.
    """

    batch: int = 64
    epochs: int = 30

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.memory = Memory()

    def learn(self, x: Any, y: Any) -> None:
        self.memory.add(x, y)

    def finish(self) -> None:
        if not len(self.memory):
            return
        x, y = self.memory.x, self.memory.y
        if self._upstream is not None:
            rows = self.seed.child("upstream").numpy().permutation(len(self._upstream))[: len(y)]
            x, y = join([x, take(self._upstream.x, rows)]), join([y, self._upstream.y[rows]])
        self.refine(x, y, self.seed.child("offline"))


def _names(kind: Any) -> list[str]:
    """The texts that a Literal, or several of them, allows."""
    return [name for part in get_args(kind) for name in (get_args(part) or (part,))]


register("method", "online-l2")(partial(Refine, penalty="l2"))
register("method", "online-ewc")(partial(Refine, penalty="ewc", strength=10.0))
for _replay in ("er", "mir", "maxloss"):
    register("method", _replay)(partial(Refine, replay=_replay))
    register("method", f"{_replay}+l2")(partial(Refine, replay=_replay, penalty="l2"))
    register("method", f"{_replay}+ewc")(partial(Refine, replay=_replay, penalty="ewc", strength=10.0))
