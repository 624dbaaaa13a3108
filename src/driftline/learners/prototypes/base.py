"""Base class for prototype learners: frozen features, and one vector per class that is updated with every label.

Features are the input of the network's last linear layer, in evaluation mode and without augmentation, so that they may
be cached: the buffer holds features, not inputs. The classes of the pretraining have no vector before their first label
in the stream, and a class without one is never answered. Before the first label the answer is class 0, with equal
scores and infinite distance.

Samples that come one by one pass the network in blocks and are compared with the classes one by one. Features do not
depend on the other samples of a batch, because the batch size of the network is constant. That its place among them
does not matter either was measured, not proven: it changed no digit in linear layers of 12 to 2,048 outputs nor in
convolutions of 4 to 64 channels. Linear layers with fewer outputs are padded.

Compute: the only pass of a sample through the network is counted whole, with its last layer, which costs as much as
comparing with all classes. Training costs that once forward and twice backward per sample, and saves the rest of the
pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from driftline.device import to_device, to_numpy
from driftline.learners.base import Learner, is_built_in
from driftline.learners.buffers import FullBuffer
from driftline.learners.online.base import check_classification, known_class_loss
from driftline.learners.online.label_counter import LabelCounter, TrainSchedule
from driftline.learners.prototypes.class_vectors import ClassVectors
from driftline.learners.settings import BelowOne, Count, CountOrZero, NonNegative, OptimizerName
from driftline.reveal import LabelFeed, RevealedLabels
from driftline.tasks import Task
from driftline.training.batches import iterations
from driftline.training.cached_features import extract_features_fixed_batch, macs_per_sample
from driftline.training.features import feature_width
from driftline.training.fit import optimizer_step
from driftline.training.mac_counter import mac_counter_of
from driftline.training.optimizers import new_optimizer
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, JsonObject, Network, Samples, State, Targets, take_rows

Similarity = Literal["linear", "cosine", "euclidean"]


@dataclass
class PrototypeLearner(Learner):
    """A learner with one vector per class on frozen features; a method may train parameters on them at intervals."""

    train_every: CountOrZero = 250  # labels between trainings; 0: never
    epochs: Count = 4  # epochs per training
    lr: NonNegative = 0.1  # learning rate
    momentum: BelowOne = 0.9  # momentum of the optimizer
    weight_decay: NonNegative = 1e-4  # weight decay
    optimizer: OptimizerName = "sgd"  # name of the optimizer
    batch: Count = 256  # size of a mini-batch
    schedule: TrainSchedule = "every"
    """Every `train_every` labels; after 1, 2 and 4 times as many; or after as many of untrained classes."""
    pretraining: str | JsonObject = "supervised"  # how its model was trained on upstream samples

    requires = "network"
    frozen_features: ClassVar[bool] = True
    quick: ClassVar[Mapping[str, str]] = {"train_every": "train_every"}

    transient = frozenset({"_class_vectors", "_macs_per_sample"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        check_classification(self, task)
        self.buffer = FullBuffer()
        self.labels = LabelCounter(self.train_every, self.schedule)
        self.training_rounds = 0
        self.known_classes = np.zeros(task.width, bool)  # the classes that it was trained on
        width = feature_width(model)
        self.sums = np.zeros((task.width, width))
        self.counts = np.zeros(task.width, int)
        self.pending_features = np.zeros((0, width), np.float32)  # of the latest samples whose labels are not known
        self.first_pending = 0  # position of the first of them in the stream
        self._macs_per_sample = 0  # cost of a pass through the network
        self._class_vectors = ClassVectors(task.width, width, euclidean=self.uses_distance)

    @property
    def uses_distance(self) -> bool:
        """True if raw outputs are minus squared distances; otherwise they are dot products."""
        raise NotImplementedError

    def support_features(self, features: np.ndarray) -> np.ndarray:
        """Return features as they enter the mean of their class."""
        return features

    def query_features(self, features: np.ndarray) -> np.ndarray:
        """Return features as they are compared with class vectors."""
        return features

    def class_vectors(self, which: slice) -> np.ndarray:
        """Return the vectors of these classes."""
        return self.means(which)

    def training_logits(self, features: Tensor) -> Tensor:
        """Return raw outputs for all classes, as a function of trained parameters."""
        raise NotImplementedError

    def means(self, which: slice) -> np.ndarray:
        """Return the mean of each of these classes; zero without data."""
        found: np.ndarray = self.sums[which] / np.maximum(self.counts[which], 1)[:, None]
        return found.astype(np.float32)

    def add_head(self, weights: dict[str, Tensor]) -> None:
        """Register parameters to train, by an optimizer that is kept between trainings."""
        self.head = nn.ParameterDict({name: nn.Parameter(to_device(start)) for name, start in weights.items()})
        decay, momentum = self.weight_decay, self.momentum
        self.optim = new_optimizer(
            self.optimizer, self.head.parameters(), lr=self.lr, weight_decay=decay, momentum=momentum
        )

    def head_rows(self, name: str, which: slice) -> np.ndarray:
        """Return the trained rows of these classes."""
        return to_numpy(self.head[name])[which]

    def features(self, x: Inputs) -> np.ndarray:
        """Return the features of samples."""
        inputs = torch_model(self.model).encode(x)
        self._macs_per_sample = self._macs_per_sample or macs_per_sample(self.model, inputs)
        mac_counter_of(self.model).add(forward=len(inputs) * self._macs_per_sample)
        blocks = extract_features_fixed_batch(self.model, inputs)
        return to_numpy(torch.cat(blocks)[: len(inputs)]) if blocks else np.zeros((0, self.sums.shape[1]), np.float32)

    def predict(self, x: Inputs) -> Answers:
        return self.to_answers(self._class_vectors.outputs(self.query_features(self.features(x))))

    def to_answers(self, outputs: np.ndarray) -> Answers:
        """Return answers from raw outputs, which are overwritten."""
        stranded = np.isneginf(outputs.max(axis=1))  # no class was known
        outputs[stranded] = 0
        answers = self._task.decode(outputs)
        assert answers.distance is not None
        answers.distance[stranded] = np.inf
        return answers

    def learn(self, x: Inputs, y: Targets) -> None:
        features = self.features(x)
        for k in range(len(y)):
            self.learn_one(features[k : k + 1], y[k : k + 1])

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        """Update a class by the features of one labeled sample, and store them; train if it is due."""
        self.update_class(x, int(y[0]))
        self.labels.add(new_class=not self.known_classes[y[0]])
        if self.train_every == 0:
            return
        self.buffer.add(x, y)
        if self.labels_until_training() <= 0:
            self.known_classes[self.buffer.y] = True
            self.train_on_buffer()
            self.training_rounds += 1
            self.labels.restart()

    def labels_until_training(self) -> int:
        """Return the number of labels until the next training, at least; it is due at 0."""
        return self.labels.until_training()

    def update_class(self, x: np.ndarray, label: int) -> None:
        """Update the vector of one class."""
        self.sums[label] += self.support_features(x)[0]
        self.counts[label] += 1
        self._class_vectors.set_vector(label, self.class_vectors(slice(label, label + 1))[0])

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        """Compute the features of all samples, then compare each with the class vectors at that moment."""
        fresh = self.features(feed.x)
        self.pending_features = np.concatenate([self.pending_features, fresh]) if len(self.pending_features) else fresh
        outputs, latest = np.empty((len(fresh), self._task.width), np.float32), 0
        for k in range(len(fresh)):
            outputs[k] = self._class_vectors.outputs(self.query_features(fresh[k : k + 1]))
            brief = is_built_in(type(self)) and not feed.needs_scores
            answer = outputs[k].argmax() if brief else self.to_answers(outputs[k : k + 1].copy())
            if (shown := feed.reveal_next(answer)) is not None:
                latest = self.learn_revealed(shown)
        if latest > self.first_pending:  # labels come in the order of their samples: those left out so far never come
            self.pending_features = self.pending_features[latest - self.first_pending :].copy()
            self.first_pending = latest
        return self.to_answers(outputs)

    def learn_revealed(self, shown: RevealedLabels) -> int:
        """Learn revealed labels from stored features; return the position after the last of them."""
        for k, turn in enumerate(shown.positions):
            place = turn - self.first_pending
            out_of_order = place < 0
            features = (
                self.features(take_rows(shown.x, slice(k, k + 1)))
                if out_of_order
                else self.pending_features[place : place + 1]
            )
            self.learn_one(features, shown.y[k : k + 1])
        return shown.positions[-1] + 1

    def train_on_buffer(self) -> None:
        """Train for some epochs over all stored samples."""
        x, y = to_device(torch.from_numpy(self.buffer.x)), to_device(torch.from_numpy(self.buffer.y).long())
        for epoch in iterations(self.epochs):
            draws = self.seed.child("lesson", self.training_rounds, epoch).torch()
            batches = torch.randperm(len(y), generator=draws).split(self.batch)
            for rows in (batches[number] for number in iterations(len(batches))):
                logits = self.training_logits(x[rows])
                optimizer_step(self.optim, known_class_loss(logits, y[rows], self.known_classes))
        passes, head = self.epochs * len(y), self.sums.size
        saved_macs = passes * (self._macs_per_sample - head)
        mac_counter_of(self.model).add(forward=passes * head, backward=2 * passes * head, saved=saved_macs)
        self.rebuild_class_vectors()

    def rebuild_class_vectors(self) -> None:
        """Recompute the vectors of all classes."""
        self._class_vectors.set_all(self.class_vectors(slice(None)), self.counts > 0)

    def restore(self, saved: State) -> None:
        super().restore(saved)
        self.rebuild_class_vectors()


def cosines(x: Tensor, vectors: Tensor, scale: Tensor) -> Tensor:
    """Return the cosine of each row with each vector, times a scale."""
    return scale * (normalize(x, dim=1) @ normalize(vectors, dim=1).T)
