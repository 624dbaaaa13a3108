"""Base class for online learners: labels arrive one at a time, all are stored, and training happens at intervals.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED): every 5,000 labels the network is
trained for 4 epochs on all labels so far, by SGD with momentum, whose state is kept between trainings. A
left-over batch is trained on too, and layers that are not trained stay in evaluation mode.

The label space grows: a class enters the answers with the first training that has it. Until then its row of the last
layer is zero and takes part neither in the answers nor in the loss.

A method decides when to train: `should_train`. There are three schedules. A method that overrides it returns from
`labels_until_training` a lower bound on the labels until then, so that inputs can be answered together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from driftline.device import to_device
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.buffers import FullBuffer
from driftline.learners.settings import BelowOne, Count, CountOrZero, NonNegative, OptimizerName
from driftline.reveal import LabelFeed
from driftline.tasks import Classification, Task
from driftline.training.cached_features import classifier_layer
from driftline.training.optimizers import new_optimizer
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, JsonObject, Network, Samples, Targets, take_rows

TrainSchedule = Literal["every", "doubling", "new-classes"]


@dataclass
class OnlineLearner(Learner):
    """A learner that stores every labelled sample and trains on all of them at intervals.

    The defaults are NED's for fine-tuning except `train_every`: its 5,000 are for streams of 90,000 samples.

    `schedule`: train every `train_every` labels; or after `train_every`, twice and four times as many; or after
    `train_every` labels of classes that it was never trained on. With 0 it never trains.
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

    requires = "network"
    quick: ClassVar[Mapping[str, str]] = {"train_every": "train_every"}

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if not isinstance(task, Classification):
            raise UserError(f"{type(self).__name__} needs a classification task")
        self.buffer = FullBuffer()
        self.n_labels = 0  # labels so far
        self.n_labels_at_training = 0  # labels at the latest training
        self.n_new_class_labels = 0  # labels since then of classes it was never trained on
        self.training_rounds = 0
        self.known_classes = np.zeros(task.width, bool)  # the classes that its last layer knows
        if upstream is not None:
            self.known_classes[np.unique(upstream.y)] = True
        elif torch_model(model).is_pretrained:
            self.known_classes[:] = True
        zero_rows(classifier_layer(model), ~self.known_classes)

    def new_optimizer(self, weights: Iterable[Tensor | JsonObject]) -> torch.optim.Optimizer:
        """Return an optimizer of these weights, or groups of them, that is kept between trainings."""
        return new_optimizer(
            self.optimizer, weights, lr=self.lr, weight_decay=self.weight_decay, momentum=self.momentum
        )

    def should_train(self) -> bool:
        """Return whether training is due."""
        return self.train_every > 0 and self.labels_until_training() <= 0

    def labels_until_training(self) -> int:
        """Return a lower bound on the number of labels until the next training; 1 if unknown."""
        if self.train_every == 0:
            return 1 << 62
        if self.schedule == "new-classes":
            return self.train_every - self.n_new_class_labels
        return (
            self.n_labels_at_training + self.train_every
            if self.schedule == "every"
            else max(self.train_every, 2 * self.n_labels_at_training)
        ) - self.n_labels

    def learn(self, x: Inputs, y: Targets) -> None:
        for k in range(len(y)):  # labels that arrive together are learned one by one
            self.learn_one(take_rows(x, slice(k, k + 1)), y[k : k + 1])

    def learn_one(self, x: Inputs, y: np.ndarray) -> None:
        """Store one labelled sample; train if it is due."""
        self.n_labels += 1
        if self.train_every == 0:
            return
        self.buffer.add(x, y)
        self.n_new_class_labels += int(not self.known_classes[y[0]])
        if self.should_train():
            self.known_classes[self.buffer.y] = True
            self.train_on_buffer()
            self.training_rounds += 1
            self.n_labels_at_training, self.n_new_class_labels = self.n_labels, 0

    def train_on_buffer(self) -> None:
        """Train on the stored samples."""
        raise NotImplementedError

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

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return the mean cross-entropy over the known classes."""
        unknown = to_device(torch.from_numpy(~self.known_classes))
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
