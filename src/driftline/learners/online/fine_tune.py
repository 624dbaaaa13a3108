"""Fine-tuning of the last layers at intervals, on all labels so far.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED), its Table 3 for more than one
layer. Departs from the authors' code, which counts tensors and not layers, so that its "1" and "2" are the same; and
which runs frozen layers in training mode, so that their batch norm moves. Here they stand still to the bit.

With one layer and without `augment` the memory holds features instead of inputs: they cannot change any more, and are
the ones that were computed to answer. Training then costs the last layer alone, forward once and backward twice; the
saved passes through the frozen layers are counted separately.

MAML (Finn et al., "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks", ICML 2017) is the same with a
network that was meta-trained for it (`pretraining.maml`). In NED, Table 1, it costs as much as the last layer's tuning.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from driftline.device import to_device, to_numpy
from driftline.learners.online.base import OnlineLearner
from driftline.learners.settings import Count
from driftline.registry import register
from driftline.reveal import LabelFeed, RevealedLabels
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.batches import iterations, shuffled_batches
from driftline.training.cached_features import (
    classifier_layer,
    extract_features_fixed_batch,
    macs_per_sample,
    padded_linear,
)
from driftline.training.fit import optimizer_step
from driftline.training.freezing import freeze_except, last_layers
from driftline.training.mac_counter import mac_counter_of
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, Network, Samples, Targets, take_rows


@register("method", "fine-tune")
@dataclass
class FineTuneLastLayers(OnlineLearner):
    """Fine-tuning of the last `n_layers` layers with weights; 1 is the last linear layer, on cached features."""

    n_layers: Count = 1  # number of last layers to train

    trains_network: ClassVar[bool] = False
    transient = frozenset({"_caches_features", "_macs_per_sample"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._caches_features = self.n_layers == 1 and self.augment == "none"
        self.pending_features: dict[int, np.ndarray] = {}  # features of samples whose labels are not known, by position
        self.last_revealed = -1  # the position of the latest label
        self._macs_per_sample = 0  # what a pass of the network costs

    def trainable_parameters(self) -> list[nn.Parameter]:
        return freeze_except(self.model, last_layers(self.model, self.n_layers))

    def features_and_logits(self, x: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return features and raw outputs, always computed in batches of one size: the last digits depend on it."""
        inputs, head = torch_model(self.model).encode(x), classifier_layer(self.model)
        self._macs_per_sample = self._macs_per_sample or macs_per_sample(self.model, inputs)
        blocks = extract_features_fixed_batch(self.model, inputs)
        with torch.no_grad():
            logits = [padded_linear(head, block) for block in blocks]
        mac_counter_of(self.model).add(forward=len(inputs) * self._macs_per_sample)
        if not blocks:
            return np.zeros((0, head.in_features), np.float32), np.zeros((0, head.out_features), np.float32)
        return to_numpy(torch.cat(blocks)[: len(inputs)]), to_numpy(torch.cat(logits)[: len(inputs)])

    def logits(self, x: Inputs) -> np.ndarray:
        return self.features_and_logits(x)[1] if self._caches_features else super().logits(x)

    def learn(self, x: Inputs, y: Targets) -> None:
        super().learn(self.features_and_logits(x)[0] if self._caches_features else x, y)

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        """Answer as the base class does; features are kept until their label is revealed."""
        if not self._caches_features:
            return super().answer_one_by_one(feed)
        # Labels come in the order of their samples: those left out so far never come.
        self.pending_features = {turn: row for turn, row in self.pending_features.items() if turn > self.last_revealed}
        given: list[Answers] = []
        at = 0
        while at < len(feed):
            n_ahead = min(max(self.labels_until_training(), 1), len(feed) - at)
            features, logits = self.features_and_logits(take_rows(feed.x, slice(at, at + n_ahead)))
            self.pending_features.update(zip(range(feed.first + at, feed.first + at + n_ahead), features, strict=True))
            given.append(self.to_answers(logits))
            for row in given[-1].rows():
                if (shown := feed.reveal_next(row)) is not None:
                    self.learn_revealed(shown)
            at += n_ahead
        return Answers.concat(given)

    def learn_revealed(self, shown: RevealedLabels) -> None:
        """Learn revealed labels from the features their samples had when they were answered."""
        rows = np.stack([self.pending_features.pop(turn) for turn in shown.positions])
        self.last_revealed = shown.positions[-1]
        OnlineLearner.learn(self, rows, shown.y)

    def train_on_buffer(self) -> None:
        if not self._caches_features:
            return super().train_on_buffer()
        features, targets = to_device(torch.from_numpy(self.buffer.x)), to_device(torch.from_numpy(self.buffer.y))
        for epoch in iterations(self.epochs):
            self.train_head_epoch(features, targets, self.seed.child("lesson", self.training_rounds, epoch))

    def train_head_epoch(self, features: torch.Tensor, targets: torch.Tensor, seed: Seed) -> None:
        """Train the last layer for one epoch."""
        head, meter = classifier_layer(self.model), mac_counter_of(self.model)
        for rows in shuffled_batches(len(targets), self.batch, seed.child("order")):
            if meter.is_spent:
                return
            optimizer_step(self.optim, self.loss(head(features[rows]), targets[rows]))
            cost = len(rows) * head.weight.numel()
            meter.add(forward=cost, backward=2 * cost, saved=len(rows) * (self._macs_per_sample - head.weight.numel()))


register("method", "maml")(partial(FineTuneLastLayers, pretraining="maml"))
