"""Base of learners that store labelled samples and train on all of them at intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from driftline.errors import RequirementError
from driftline.learners.base import Learner
from driftline.learners.buffers import FullBuffer
from driftline.learners.online.label_counter import LabelCounter, TrainSchedule
from driftline.learners.settings import BelowOne, Count, CountOrZero, NonNegative, OptimizerName
from driftline.tasks import Classification, Task
from driftline.training.optimizers import new_optimizer
from driftline.types import Inputs, JsonObject, Network, Samples


@dataclass
class IntervalLearner(Learner):
    """A learner that stores every labelled sample and trains on all of them at intervals."""

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
            raise RequirementError("a classification task", f"{type(self).__name__} needs a classification task")
        self.buffer = FullBuffer()
        self.labels = LabelCounter(self.train_every, self.schedule)
        self.training_rounds = 0
        self.known_classes = np.zeros(task.width, bool)  # the classes that it was trained on

    def new_optimizer(self, parameters: list[nn.Parameter] | list[JsonObject]) -> torch.optim.Optimizer:
        """Return the optimizer of all trainings."""
        decay, momentum = self.weight_decay, self.momentum
        return new_optimizer(self.optimizer, parameters, lr=self.lr, weight_decay=decay, momentum=momentum)

    def labels_until_training(self) -> int:
        """Return a lower bound on the number of labels until the next training; it is due at 0."""
        return self.labels.until_training()

    def learn_one(self, x: Inputs, y: np.ndarray) -> None:
        """Store one labelled sample; train if it is due."""
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
        raise NotImplementedError
