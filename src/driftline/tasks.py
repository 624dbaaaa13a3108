"""What an answer is. A task hides the answer's type, so that a method is written once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from driftline.errors import UserError
from driftline.texts import matches, split_answers
from driftline.types import Answers, Inputs, Targets

if TYPE_CHECKING:
    from torch import Tensor

IGNORE_INDEX = -100
"""What fills up a row of target tokens; Hugging Face's models use the same number."""


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
        """Softmax and arg max; a tie goes to the lower index. The distance is minus the largest raw output.

        >>> Classification(("cat", "dog")).decode(np.array([[0.0, np.log(3.0)]])).scores.round(2).tolist()
        [[0.25, 0.75]]
        """
        largest = outputs.max(axis=1, keepdims=True)
        scores = np.exp(outputs - largest)
        scores /= scores.sum(axis=1, keepdims=True)
        return Answers(outputs.argmax(axis=1), scores, distance=-largest[:, 0])

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        right: np.ndarray = np.equal(prediction, y)
        return right.astype(float)


@dataclass(frozen=True)
class Regression:
    """A number. Models see it shifted by `centre` and divided by `scale`, which come from early data alone."""

    center: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        return 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Shifted and scaled.

        >>> Regression(center=10.0, scale=2.0).targets(np.array([10.0, 14.0])).tolist()
        [0.0, 2.0]
        """
        return ((np.asarray(y) - self.center) / self.scale).astype(np.float32)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs[:, 0] - y.float()) ** 2

    def decode(self, outputs: np.ndarray) -> Answers:
        return Answers(prediction=outputs[:, 0].astype(float) * self.scale + self.center)

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 for an exact prediction, 0 for one that is `scale` or more away: max(0, 1 - (error / scale)^2)."""
        error = (np.asarray(prediction, float) - np.asarray(y, float)) / self.scale
        right: np.ndarray = np.maximum(0.0, 1.0 - error**2)
        return right


@dataclass(frozen=True)
class TextToText:
    """A text, right if it is, normalised, one of the accepted ones (`driftline.texts`).

    `y` is an array of strings, several accepted answers joined in one by `texts.one_of`. Its model is a `Writer`: raw
    outputs are the logits of every token of the right answer, given the tokens before it.
    """

    label_smoothing: float = 0.0
    """How much of each token's target is spread evenly over the whole vocabulary."""

    @property
    def width(self) -> int:
        return 0  # how many tokens there are, the model says

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The first accepted answer of each sample; `Writer.targets` makes tokens of it."""
        return np.array([(split_answers(one) or ("",))[0] for one in y], dtype=object)

    def sample_answers(self, y: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """One accepted answer of each sample at random, for training that takes another in each epoch.

        >>> TextToText().sample_answers(np.array(["Rome"], dtype=object), np.random.default_rng(0)).tolist()
        ['Rome']
        """
        several = [split_answers(one) or ("",) for one in y]
        return np.array([answers[random.integers(len(answers))] for answers in several], dtype=object)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The mean over an answer's tokens of minus log probability; `NO_TOKEN` in `y` does not count."""
        from torch.nn.functional import cross_entropy

        y = y[:, : outputs.shape[1]]
        losses = cross_entropy(
            outputs.transpose(1, 2),
            y,
            ignore_index=IGNORE_INDEX,
            reduction="none",
            label_smoothing=self.label_smoothing,
        )
        return losses.sum(1) / (y != IGNORE_INDEX).sum(1).clamp(min=1)

    def decode(self, outputs: np.ndarray) -> Answers:
        """What a model has written is its answer, without white space around it."""
        return Answers(prediction=np.array([str(text).strip() for text in outputs], dtype=object))

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.array([float(matches(said, truth)) for said, truth in zip(prediction, y, strict=True)], float)


class TextGenerator(Protocol):
    """What a network must offer, beside being one, to answer with texts of its own.

    Such a network needs the right answer to compute its loss, and writes token by token to give an answer. The rest of
    the library sees neither: `training.torch_model.TextGenerator` calls these.
    """

    def build_vocabulary(self, x: Inputs, y: Targets) -> None:
        """Take words from the first samples it is trained on, if it does not have any."""

    def encode(self, x: Inputs) -> Tensor:
        """Texts as rows of tokens; what is a tensor already stays as it is."""

    def targets(self, y: Targets) -> Tensor:
        """Answers as rows of tokens, filled up with `NO_TOKEN`."""

    def teacher_forced(self, x: Tensor, y: Tensor) -> Tensor:
        """Logits (samples, tokens, vocabulary) of each token of the right answers, given those before it."""

    def generate(self, x: Inputs) -> np.ndarray:
        """An answer of its own for each text, as strings."""


def mean_loss(task: Task, outputs: Tensor, y: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The mean of a task's loss. Torch has it in one piece for classes: the same slope to the bit, in less time."""
    if type(task) is Classification:  # not one derived from it, whose loss may be another
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs, y.long(), label_smoothing=label_smoothing)
    if label_smoothing:
        task = _smoothed(task, label_smoothing)
    return task.loss(outputs, y).mean()


def _smoothed(task: Task, label_smoothing: float) -> Task:
    if not isinstance(task, TextToText):
        raise UserError(f"label_smoothing={label_smoothing}: only classes and texts can be smoothed")
    return replace(task, label_smoothing=label_smoothing)
