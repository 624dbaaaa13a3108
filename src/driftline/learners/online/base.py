"""Base class for online learners: labels arrive one at a time, all are stored, and training happens at intervals.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED): every 5,000 labels the network is
trained for 4 epochs on all labels so far, by SGD with momentum, whose state is kept between trainings. A
left-over batch is trained on too, and layers that are not trained stay in evaluation mode.

The label space grows: a class enters the answers with the first training that has it. Until then its row of the last
layer is zero and takes part neither in the answers nor in the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from driftline.device import to_device, to_numpy
from driftline.errors import RequirementError
from driftline.learners.base import Learner
from driftline.learners.buffers import FullBuffer
from driftline.learners.online.label_counter import LabelCounter, TrainSchedule
from driftline.learners.settings import Augmentation, BelowOne, Count, CountOrZero, NonNegative, OptimizerName
from driftline.models.preprocessing import to_float_batch
from driftline.reveal import LabelFeed
from driftline.seeds import Seed
from driftline.tasks import Classification, Task
from driftline.training.augmentations import augmented
from driftline.training.batches import iterations, shuffled_batches
from driftline.training.cached_features import classifier_layer
from driftline.training.fit import converted_once, descend_on, training_tensors
from driftline.training.freezing import eval_frozen
from driftline.training.mac_counter import is_spent
from driftline.training.modes import training
from driftline.training.optimizers import new_optimizer
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, JsonObject, Network, Samples, Targets, take_rows


@dataclass
class OnlineLearner(Learner):
    """A learner that stores every labeled sample and trains a network on all of them at intervals.

    The defaults are NED's for fine-tuning except `train_every`: its 5,000 are for streams of 90,000 samples.
    """

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
    augment: Augmentation = "none"  # augmentation of training images; NED: crop-flip

    requires = "network"
    trains_network: ClassVar[bool] = True
    quick: ClassVar[Mapping[str, str]] = {"train_every": "train_every"}

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        check_classification(self, task)
        self.buffer = FullBuffer()
        self.labels = LabelCounter(self.train_every, self.schedule)
        self.training_rounds = 0
        self.known_classes = np.zeros(task.width, bool)  # the classes that its last layer knows
        if upstream is not None:
            self.known_classes[np.unique(upstream.y)] = True
        elif torch_model(model).is_pretrained:
            self.known_classes[:] = True
        zero_rows(classifier_layer(model), ~self.known_classes)
        self.known_classes &= initialized_rows(classifier_layer(model))
        decay, momentum = self.weight_decay, self.momentum
        self.optim = new_optimizer(
            self.optimizer, self.trainable_parameters(), lr=self.lr, weight_decay=decay, momentum=momentum
        )

    def trainable_parameters(self) -> list[nn.Parameter] | list[JsonObject]:
        """Return the parameters to train, or groups of them with their own learning rates."""
        return list(self.model.parameters())

    def labels_until_training(self) -> int:
        """Return a lower bound on the number of labels until the next training; it is due at 0."""
        return self.labels.until_training()

    def learn(self, x: Inputs, y: Targets) -> None:
        for k in range(len(y)):  # labels that arrive together are learned one by one
            self.learn_one(take_rows(x, slice(k, k + 1)), y[k : k + 1])

    def learn_one(self, x: Inputs, y: np.ndarray) -> None:
        """Store one labeled sample; train if it is due."""
        self.labels.add(new_class=not self.known_classes[y[0]])
        if self.train_every == 0:
            return
        self.buffer.add(x, y)
        if self.labels_until_training() <= 0:
            self.known_classes[self.buffer.y] = True
            self.train_on_buffer()
            self.training_rounds += 1
            self.labels.restart()

    def train_on_buffer(self) -> None:
        """Train on the stored samples."""
        inputs, targets = training_tensors(self.model, self.buffer.x, self.buffer.y)
        if self.augment == "none":
            inputs = converted_once(inputs)
        for epoch in iterations(self.epochs):
            self.train_epoch(inputs, targets, self.seed.child("lesson", self.training_rounds, epoch))

    def train_epoch(self, inputs: Tensor, targets: Tensor, seed: Seed) -> None:
        """Train for one epoch."""
        inputs = augmented(inputs, self.augment, seed)
        with training(self.model, seed.child("noise")):
            eval_frozen(self.model)
            for rows in shuffled_batches(len(targets), self.batch, seed.child("order")):
                if is_spent(self.model):
                    return
                x, y = to_float_batch(inputs[rows]), targets[rows]
                descend_on(self.optim, self.model, self.training_loss, x, y)

    def training_loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a mini-batch."""
        return self.loss(self.model(x), y)

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return the mean cross-entropy over the known classes."""
        return known_class_loss(logits, y, self.known_classes)

    def logits(self, x: Inputs) -> np.ndarray:
        """Return raw outputs for all classes, known or not."""
        return torch_model(self.model).predict(x)

    def predict(self, x: Inputs) -> Answers:
        return self.to_answers(self.logits(x))

    def to_answers(self, logits: np.ndarray) -> Answers:
        """Return answers among the known classes; without any, the distance is infinite."""
        answers = self._task.decode(mask_unknown(logits, self.known_classes))
        return answers if self.known_classes.any() else replace(answers, distance=np.full(len(answers), np.inf))

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        """Answer in blocks that end before the next training: no label changes answers until then."""
        given: list[Answers] = []
        at = 0
        while at < len(feed):
            n_ahead = min(max(self.labels_until_training(), 1), len(feed) - at)
            given.append(self.predict(take_rows(feed.x, slice(at, at + n_ahead))))
            for row in given[-1].rows():
                if (shown := feed.reveal_next(row)) is not None:
                    self.learn(shown.x, shown.y)
            at += n_ahead
        return Answers.concat(given)


def check_classification(learner: Learner, task: Task) -> None:
    """Refuse a task without classes."""
    if not isinstance(task, Classification):
        raise RequirementError("a classification task", f"{type(learner).__name__} needs a classification task")


def known_class_loss(logits: Tensor, y: Tensor, known: np.ndarray) -> Tensor:
    """Return the mean cross-entropy over the known classes."""
    if known.all():
        return cross_entropy(logits, y.long())
    unknown = to_device(torch.from_numpy(~known))
    return cross_entropy(logits.masked_fill(unknown, -torch.inf), y.long())


def mask_unknown(logits: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return raw outputs with minus infinity for unknown classes; zeros while none is known.

    >>> mask_unknown(np.array([[1.0, 2.0]]), np.array([True, False])).tolist()
    [[1.0, -inf]]
    """
    if not known.any():
        return np.zeros_like(logits)
    return np.where(known, logits, -np.inf)


def zero_rows(layer: nn.Linear, rows: np.ndarray) -> None:
    """Set the rows of a linear layer for these classes to zero."""
    with torch.no_grad():
        layer.weight[torch.from_numpy(rows)] = 0
        if layer.bias is not None:
            layer.bias[torch.from_numpy(rows)] = 0


def initialized_rows(layer: nn.Linear) -> np.ndarray:
    """Return which rows of a last layer are not zero; pretraining that does not use it leaves zeros."""
    return to_numpy(layer.weight.detach().ne(0).any(dim=1))
