"""Base class for online learners: labels arrive one at a time, all are stored, and training happens at intervals.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED): every 5,000 labels the network is
trained for 4 epochs on all labels so far, by SGD with momentum, whose state is kept between trainings. A
left-over batch is trained on too, and layers that are not trained stay in evaluation mode.

The label space grows: a class enters the answers with the first training that has it. Until then its row of the last
layer is zero and takes part neither in the answers nor in the loss.

A method decides when to train: `wants_lesson`. Three schedules are ready-made. A method that overrides it returns from
`rest` a lower bound on the labels until then, so that inputs can be answered together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.settings import BelowOne, Count, CountOrZero, NonNegative
from driftline.reveal import Turns
from driftline.tasks import Classification, Task
from driftline.training.encode import last_linear
from driftline.training.memory import Archive
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Samples, take

Rhythm = Literal["every", "doubling", "new-classes"]


@dataclass
class Lifelong(Learner):
    """A learner that stores every labelled sample and trains on all of them at intervals.

    The defaults are NED's for fine-tuning, but for `every`: its 5,000 are for streams of 90,000 samples.

    `rhythm`: train every `every` labels; or after `every`, twice and four times as many; or after `every` labels of
    classes that it was never trained on. With every=0 it never trains, and stores nothing.
    """

    every: CountOrZero = 250
    epochs: Count = 4
    lr: NonNegative = 0.1
    momentum: BelowOne = 0.9
    weight_decay: NonNegative = 1e-4
    batch: Count = 256
    rhythm: Rhythm = "every"
    pretraining: str | dict[str, Any] = "supervised"  # how its model was trained on upstream samples

    requires = "network"
    quick: ClassVar[Mapping[str, str]] = {"every": "train_every"}

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if not isinstance(task, Classification):
            raise UserError(f"{type(self).__name__} needs a classification task")
        self.memory = Archive()
        self.heard = 0  # labels so far
        self.last = 0  # labels at the latest training
        self.strangers = 0  # labels since then of classes it was never trained on
        self.lessons = 0
        self.trained = np.zeros(task.width, bool)  # the classes that its last layer knows
        if upstream is not None:
            self.trained[np.unique(upstream.y)] = True
        elif torch_model(model).is_pretrained:
            self.trained[:] = True
        clear_rows(last_linear(model), ~self.trained)

    def wants_lesson(self) -> bool:
        """Return whether training is due."""
        return self.every > 0 and self.rest() <= 0

    def rest(self) -> int:
        """Return a lower bound on the number of labels until the next training; 1 if unknown."""
        if self.every == 0:
            return 1 << 62
        if self.rhythm == "new-classes":
            return self.every - self.strangers
        return (self.last + self.every if self.rhythm == "every" else max(self.every, 2 * self.last)) - self.heard

    def learn(self, x: Any, y: Any) -> None:
        for k in range(len(y)):  # labels that arrive together are learned one by one
            self.hear(take(x, slice(k, k + 1)), y[k : k + 1])

    def hear(self, x: Any, y: np.ndarray) -> None:
        """Store one labelled sample; train if it is due."""
        self.heard += 1
        if self.every == 0:
            return
        self.memory.add(x, y)
        self.strangers += int(not self.trained[y[0]])
        if self.wants_lesson():
            self.trained[self.memory.y] = True
            self.lesson()
            self.lessons += 1
            self.last, self.strangers = self.heard, 0

    def lesson(self) -> None:
        """Train on the stored samples."""
        raise NotImplementedError

    def raw(self, x: Any) -> np.ndarray:
        """Return raw outputs for all classes, known or not."""
        return torch_model(self.model).predict(x)

    def predict(self, x: Any) -> Answers:
        return self.decoded(self.raw(x))

    def decoded(self, logits: np.ndarray) -> Answers:
        """Return answers among the known classes; without any, the distance is infinite."""
        answers = self._task.decode(known_only(logits, self.trained))
        return answers if self.trained.any() else replace(answers, distance=np.full(len(answers), np.inf))

    def in_turn(self, turns: Turns) -> Answers:
        """Answer in blocks that end before the next training: no label changes answers until then."""
        given: list[Answers] = []
        at = 0
        while at < len(turns):
            ahead = min(max(self.rest(), 1), len(turns) - at)
            given.append(self.predict(take(turns.x, slice(at, at + ahead))))
            for row in given[-1].rows():
                if (shown := turns.tell(row)) is not None:
                    self.learn(shown.x, shown.y)
            at += ahead
        return Answers.concat(given)

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return the mean cross-entropy over the known classes."""
        unknown = torch.from_numpy(~self.trained)
        return cross_entropy(logits.masked_fill(unknown, -torch.inf), y.long())


def known_only(logits: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return raw outputs with minus infinity for unknown classes; zeros while none is known.

    >>> known_only(np.array([[1.0, 2.0]]), np.array([True, False])).tolist()
    [[1.0, -inf]]
    """
    if not known.any():
        return np.zeros_like(logits)
    return np.where(known, logits, -np.inf)


def clear_rows(layer: nn.Linear, rows: np.ndarray) -> None:
    """Set the rows of a linear layer for these classes to zero."""
    with torch.no_grad():
        layer.weight[torch.from_numpy(rows)] = 0
        if layer.bias is not None:
            layer.bias[torch.from_numpy(rows)] = 0
