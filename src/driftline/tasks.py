"""What an answer is. A task hides the answer's type, so that a method is written once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import softmax

from driftline.types import Answers

if TYPE_CHECKING:
    from torch import Tensor


class Task(Protocol):
    """Between a model's raw outputs and an answer that is right or wrong."""

    @property
    def width(self) -> int:
        """How many raw outputs a model needs per sample."""

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Answers in the units that a model is trained on and puts out."""

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """One loss per sample, from raw outputs and targets."""

    def decode(self, outputs: np.ndarray) -> Answers:
        """Raw outputs to answers."""

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How right each prediction is, from 0 to 1."""


@dataclass(frozen=True)
class Classification:
    """One of `classes`; `y` and predictions are indices into it, raw outputs are logits."""

    classes: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.classes)

    def targets(self, y: np.ndarray) -> np.ndarray:
        return y

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs, y.long(), reduction="none")

    def decode(self, outputs: np.ndarray) -> Answers:
        """Softmax and arg max; a tie goes to the lower index.

        >>> Classification(("cat", "dog")).decode(np.array([[0.0, np.log(3.0)]])).scores.round(2).tolist()
        [[0.25, 0.75]]
        """
        return Answers(prediction=outputs.argmax(axis=1), scores=softmax(outputs, axis=1))

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        right: np.ndarray = np.equal(prediction, y)
        return right.astype(float)


@dataclass(frozen=True)
class Regression:
    """A number. Models see it shifted by `centre` and divided by `scale`, which come from early data alone."""

    centre: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        return 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Shifted and scaled.

        >>> Regression(centre=10.0, scale=2.0).targets(np.array([10.0, 14.0])).tolist()
        [0.0, 2.0]
        """
        return ((np.asarray(y) - self.centre) / self.scale).astype(np.float32)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs[:, 0] - y.float()) ** 2

    def decode(self, outputs: np.ndarray) -> Answers:
        return Answers(prediction=outputs[:, 0].astype(float) * self.scale + self.centre)

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 for an exact prediction, 0 for one that is `scale` or more away: max(0, 1 - (error / scale)^2)."""
        error = (np.asarray(prediction, float) - np.asarray(y, float)) / self.scale
        right: np.ndarray = np.maximum(0.0, 1.0 - error**2)
        return right


def mean_loss(task: Task, outputs: Tensor, y: Tensor) -> Tensor:
    """The mean of a task's loss. Torch has it in one piece for classes: the same slope to the bit, in less time."""
    if type(task) is Classification:  # not one derived from it, whose loss may be another
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs, y.long())
    return task.loss(outputs, y).mean()
