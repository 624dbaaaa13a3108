"""Base class for prototype learners: frozen features, and one vector per class that is updated with every label.

Features are the input of the network's last linear layer, in evaluation mode and without augmentation, so that they may
be kept: the memory holds features, not inputs. The classes of the pretraining have no vector before their first label
in the stream, and a class without one is never answered. While there is none at all the answer is class 0, with even
scores, infinitely far from every class.

Samples that come one by one are answered in blocks: all of a block are compared with the classes at its start, and
those not answered yet again with each class that changes. This equals asking one by one to the last digit, given the
same features. These do not depend on what is computed beside a sample, because the network is always asked about
equally many. That its place among them does not matter either was measured, not proven: it changed no digit in linear
layers of 12 to 2,048 outputs nor in convolutions of 4 to 64 channels. Linear layers with fewer outputs are padded.

Compute: the only pass of a sample through the network is counted whole, with its last layer, which costs as much as
comparing with all classes. Training costs that once forward and twice backward per sample, and saves the rest of the
pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from driftline.learners.lifelong import Lifelong
from driftline.reveal import Shown, Turns
from driftline.tasks import Task
from driftline.training import pulse
from driftline.training.encode import cost_of_one, embed_in_blocks, last_linear
from driftline.training.exemplars import BLOCK, Exemplars, take_in
from driftline.training.fit import descend
from driftline.training.meter import meter_of
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Samples, take

Similarity = Literal["linear", "cosine", "euclidean"]


@dataclass
class OnFeatures(Lifelong):
    """A learner with one vector per class on frozen features."""

    keeps_features: ClassVar[bool] = True

    transient = frozenset({"_exemplars", "_means_now", "_per_sample"})

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.trained[:] = False
        width = last_linear(model).in_features
        self.sums = np.zeros((task.width, width))
        self.counts = np.zeros(task.width, int)
        self.untold = np.zeros((0, width), np.float32)  # features of the latest samples whose labels are not known
        self.oldest = 0  # whose turn the first of them was
        self._per_sample = 0  # what a pass of the network costs
        self._means_now = np.zeros(self.sums.shape, np.float32)
        self._exemplars = Exemplars(task.width, width, apart=self.apart)

    @property
    def apart(self) -> bool:
        """True if raw outputs are minus squared distances; otherwise they are dot products."""
        raise NotImplementedError

    def kept(self, features: np.ndarray) -> np.ndarray:
        """Return features as they enter the mean of their class."""
        return features

    def asked(self, features: np.ndarray) -> np.ndarray:
        """Return features as they are compared with class vectors."""
        return features

    def vectors(self, which: slice) -> np.ndarray:
        """Return the vectors of these classes."""
        return self.means(which)

    def compared(self, features: Tensor) -> Tensor:
        """Return raw outputs for all classes, as a function of trained parameters."""
        raise NotImplementedError

    def means(self, which: slice) -> np.ndarray:
        """Return the mean of each of these classes; zero without data."""
        found: np.ndarray = self._means_now[which]
        return found

    def train_in_lessons(self, weights: dict[str, Tensor]) -> None:
        """Register parameters to train, by SGD whose momentum is kept between trainings."""
        self.head = nn.ParameterDict({name: nn.Parameter(start) for name, start in weights.items()})
        self.descent = torch.optim.SGD(
            self.head.parameters(), lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
        )

    def lessons_made(self, name: str, which: slice) -> np.ndarray:
        """Return the trained rows of these classes."""
        rows: np.ndarray = self.head[name].detach().numpy()[which]
        return rows

    def features(self, x: Any) -> np.ndarray:
        """Return the features of samples."""
        inputs = torch_model(self.model).encode(x)
        self._per_sample = self._per_sample or cost_of_one(self.model, inputs)
        meter_of(self.model).charge(forward=len(inputs) * self._per_sample)
        found = [torch.zeros(0, self.sums.shape[1]), *embed_in_blocks(self.model, inputs)]
        together: np.ndarray = torch.cat(found)[: len(inputs)].numpy()
        return together

    def predict(self, x: Any) -> Answers:
        return self.decoded(self._exemplars.outputs(self.asked(self.features(x))))

    def decoded(self, outputs: np.ndarray) -> Answers:
        """Return answers from raw outputs, which are overwritten."""
        stranded = np.isneginf(outputs.max(axis=1))  # no class was known
        outputs[stranded] = 0
        answers = self._task.decode(outputs)
        assert answers.distance is not None
        answers.distance[stranded] = np.inf
        return answers

    def learn(self, x: Any, y: Any) -> None:
        super().learn(self.features(x), y)

    def hear(self, x: np.ndarray, y: np.ndarray) -> None:
        """Store the features of one labelled sample; train if it is due."""
        self.absorb(x, int(y[0]))
        super().hear(x, y)

    def absorb(self, x: np.ndarray, label: int) -> None:
        """Update the vector of one class."""
        take_in(self.kept(x)[0], label, self.sums, self.counts, self._means_now)
        self._exemplars.put(label, self.vectors(slice(label, label + 1))[0])

    def in_turn(self, turns: Turns) -> Answers:
        """Answer in blocks; training ends a block, because it changes all classes."""
        fresh = self.features(turns.x)
        self.untold = np.concatenate([self.untold, fresh]) if len(self.untold) else fresh
        given = [self.decoded(np.empty((0, self._task.width), np.float32))]
        at = latest = 0
        while at < len(fresh):
            outputs = self._exemplars.open(self.asked(fresh[at : at + BLOCK]))
            done, latest = self.answer_up_to_lesson(outputs, turns, at, latest)
            given.append(self.decoded(outputs[:done]))
            at += done
        if latest > self.oldest:  # labels come in the order of their samples: those left out so far never come
            self.untold, self.oldest = self.untold[latest - self.oldest :].copy(), latest
        return Answers.concat(given)

    def answer_up_to_lesson(self, outputs: np.ndarray, turns: Turns, at: int, latest: int) -> tuple[int, int]:
        """Answer the samples of a block one by one, from position `at` on.

        Returns how many were answered, and the turn after the latest with a label.
        """
        exemplars, lessons, done = self._exemplars, self.lessons, 0
        for done, row in enumerate(outputs, start=1):
            exemplars.answered = done
            answer = row.argmax() if self.built_in() else self.decoded(row[None].copy())
            if (shown := turns.tell(answer)) is not None:
                latest = self.hear_late(shown)
                if self.lessons != lessons:
                    break
        return done, latest

    def hear_late(self, shown: Shown) -> int:
        """Learn revealed labels from stored features; return the position after the last of them."""
        for k, turn in enumerate(shown.turns):
            place = turn - self.oldest
            out_of_order = place < 0
            features = self.features(take(shown.x, slice(k, k + 1))) if out_of_order else self.untold[place : place + 1]
            self.hear(features, shown.y[k : k + 1])
        return shown.turns[-1] + 1

    def lesson(self) -> None:
        """Train for some epochs over all stored samples."""
        x, y = torch.from_numpy(self.memory.x), torch.from_numpy(self.memory.y).long()
        for epoch in pulse.each(range(self.epochs)):
            draws = self.seed.child("lesson", self.lessons, epoch).torch()
            for rows in pulse.each(torch.randperm(len(y), generator=draws).split(self.batch)):
                descend(self.descent, self.loss(self.compared(x[rows]), y[rows]))
        passes, head = self.epochs * len(y), self.sums.size
        spared = passes * (self._per_sample - head)
        meter_of(self.model).charge(forward=passes * head, backward=2 * passes * head, spared=spared)
        self.set_right()

    def set_right(self) -> None:
        """Recompute the vectors of all classes."""
        self._exemplars.put_all(self.vectors(slice(None)), self.counts > 0)

    def restore(self, saved: Mapping[str, Any]) -> None:
        super().restore(saved)
        self._means_now[:] = self.sums / np.maximum(self.counts, 1)[:, None]
        self.set_right()


def unit(rows: np.ndarray) -> np.ndarray:
    """Return rows normalized to length one; a row of zeros stays.

    >>> unit(np.float32([[0, 3], [0, 0]])).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    found: np.ndarray = rows / np.where(length > 0, length, 1)
    return found


def cosines(x: Tensor, vectors: Tensor, scale: Tensor) -> Tensor:
    """Return the cosine of each row with each vector, times a scale."""
    return scale * (normalize(x, dim=1) @ normalize(vectors, dim=1).T)
