"""Fine-tuning of the last layers at intervals, on all labels so far.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED), its Table 3 for more than one
layer. Departs from the authors' code, which counts tensors and not layers, so that its "1" and "2" are the same; and
which runs frozen layers in training mode, so that their batch norm moves. Here they stand still to the bit.

With one layer the memory holds features instead of inputs: they cannot change any more, and are the ones that were
computed to answer. Training then costs the last layer alone, forward once and backward twice; the saved passes through
the frozen layers are counted separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from driftline.learners.lifelong import Lifelong
from driftline.learners.settings import Count, NonNegative
from driftline.learners.standard_training import StandardTraining
from driftline.registry import register
from driftline.reveal import Shown, Turns
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training import pulse
from driftline.training.encode import cost_of_one, embed_in_blocks, last_linear, widened
from driftline.training.epochs import shuffled
from driftline.training.fit import descend
from driftline.training.freezing import last_layers, train_only
from driftline.training.meter import meter_of
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Samples, take


@register("method", "fine-tune")
@dataclass
class FineTuneLast(StandardTraining):
    """Fine-tuning of the last `layers` layers with weights; 1 is the last linear layer, on cached features."""

    lr: NonNegative = 0.1
    layers: Count = 1

    transient = frozenset({"_keeps_features", "_per_sample"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._keeps_features = self.layers == 1
        self.pending: dict[int, np.ndarray] = {}  # features of samples whose labels are not known, by turn
        self.latest = -1  # the turn of the latest label
        self._per_sample = 0  # what a pass of the network costs

    def to_train(self) -> list[Any]:
        return train_only(self.model, last_layers(self.model, self.layers))

    def see(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return features and raw outputs, always computed in batches of one size: the last digits depend on it."""
        inputs, head = torch_model(self.model).encode(x), last_linear(self.model)
        self._per_sample = self._per_sample or cost_of_one(self.model, inputs)
        blocks = embed_in_blocks(self.model, inputs)
        with torch.no_grad():
            logits = [widened(head, block) for block in blocks]
        meter_of(self.model).charge(forward=len(inputs) * self._per_sample)
        features, outputs = torch.zeros(0, head.in_features), torch.zeros(0, head.out_features)
        n = len(inputs)
        return torch.cat([features, *blocks])[:n].numpy(), torch.cat([outputs, *logits])[:n].numpy()

    def raw(self, x: Any) -> np.ndarray:
        return self.see(x)[1] if self._keeps_features else super().raw(x)

    def learn(self, x: Any, y: Any) -> None:
        super().learn(self.see(x)[0] if self._keeps_features else x, y)

    def in_turn(self, turns: Turns) -> Answers:
        """Answer as the base class does; features are kept until their label is revealed."""
        if not self._keeps_features:
            return super().in_turn(turns)
        # Labels come in the order of their samples: those left out so far never come.
        self.pending = {turn: row for turn, row in self.pending.items() if turn > self.latest}
        given: list[Answers] = []
        at = 0
        while at < len(turns):
            ahead = min(max(self.rest(), 1), len(turns) - at)
            features, logits = self.see(take(turns.x, slice(at, at + ahead)))
            self.pending.update(zip(range(turns.first + at, turns.first + at + ahead), features, strict=True))
            given.append(self.decoded(logits))
            for row in given[-1].rows():
                if (shown := turns.tell(row)) is not None:
                    self.recognise(shown)
            at += ahead
        return Answers.concat(given)

    def recognise(self, shown: Shown) -> None:
        """Learn revealed labels from the features their samples had when they were answered."""
        rows = np.stack([self.pending.pop(turn) for turn in shown.turns])
        self.latest = shown.turns[-1]
        Lifelong.learn(self, rows, shown.y)

    def lesson(self) -> None:
        if not self._keeps_features:
            return super().lesson()
        features, targets = torch.from_numpy(self.memory.x), torch.from_numpy(self.memory.y)
        for epoch in pulse.each(range(self.epochs)):
            self.practise_head(features, targets, self.seed.child("lesson", self.lessons, epoch))

    def practise_head(self, features: torch.Tensor, targets: torch.Tensor, seed: Seed) -> None:
        """Train the last layer for one epoch."""
        head, meter = last_linear(self.model), meter_of(self.model)
        for rows in pulse.each(shuffled(len(targets), self.batch, seed.child("order"))):
            descend(self.descent, self.loss(head(features[rows]), targets[rows]))
            cost = len(rows) * head.weight.numel()
            meter.charge(forward=cost, backward=2 * cost, spared=len(rows) * (self._per_sample - head.weight.numel()))
