"""Tasks: classification, regression, text to text. A task hides the type of answers from methods."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from driftline.errors import UserError
from driftline.text_answers import matches, split_answers
from driftline.types import Answers, Inputs, Targets

if TYPE_CHECKING:
    from torch import Tensor

IGNORE_INDEX = -100
"""Padding of target tokens, as in Hugging Face's models."""


class Task(Protocol):
    """The conversion between a model's raw outputs and answers, and their correctness."""

    @property
    def width(self) -> int:
        """Number of raw outputs per sample."""

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return labels in the units that a model is trained on."""

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return one loss per sample, from raw outputs and targets."""

    def decode(self, outputs: np.ndarray) -> Answers:
        """Return answers from raw outputs."""

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the correctness of each prediction, from 0 to 1."""


@dataclass(frozen=True)
class Classification:
    """Classification: `y` and predictions are indices into `classes`, raw outputs are logits."""

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
        """Return softmax and arg max; a tie goes to the lower index. The distance is minus the largest raw output.

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
    """Regression: models see numbers shifted by `center` and divided by `scale`, which come from early data only."""

    center: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        return 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return shifted and scaled labels.

        >>> Regression(center=10.0, scale=2.0).targets(np.array([10.0, 14.0])).tolist()
        [0.0, 2.0]
        """
        return ((np.asarray(y) - self.center) / self.scale).astype(np.float32)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs[:, 0] - y.float()) ** 2

    def decode(self, outputs: np.ndarray) -> Answers:
        return Answers(prediction=outputs[:, 0].astype(float) * self.scale + self.center)

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return max(0, 1 - (error / scale)^2): 1 if exact, 0 if `scale` or more away."""
        error = (np.asarray(prediction, float) - np.asarray(y, float)) / self.scale
        right: np.ndarray = np.maximum(0.0, 1.0 - error**2)
        return right


@dataclass(frozen=True)
class TextToText:
    """Text to text: an answer is right if it is, normalized, one of the accepted ones (`driftline.text_answers`).

    `y` is an array of strings, each with all accepted answers (`text_answers.join_answers`). The model is a
    `TextGenerator`: raw outputs are the logits of every token of the right answer, given the tokens before it.
    """

    label_smoothing: float = 0.0
    """Share of each token's target that is spread evenly over the vocabulary."""

    @property
    def width(self) -> int:
        return 0  # the model knows its number of tokens

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return the first accepted answer of each sample; `TextGenerator.targets` tokenizes it."""
        return np.array([(split_answers(text) or ("",))[0] for text in y], dtype=object)

    def sample_answers(self, y: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw one accepted answer of each sample, for training with another one in each epoch.

        >>> TextToText().sample_answers(np.array(["Rome"], dtype=object), np.random.default_rng(0)).tolist()
        ['Rome']
        """
        accepted = [split_answers(text) or ("",) for text in y]
        return np.array([answers[random.integers(len(answers))] for answers in accepted], dtype=object)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the mean negative log-likelihood of each answer's tokens, without `IGNORE_INDEX`."""
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
        """Return generated texts as answers, without surrounding white space."""
        return Answers(prediction=np.array([str(text).strip() for text in outputs], dtype=object))

    def correct(self, prediction: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.array([float(matches(answer, truth)) for answer, truth in zip(prediction, y, strict=True)], float)


class TextGenerator(Protocol):
    """The additional methods of a network that generates texts.

    Its loss needs the right answer, and it generates token by token; `training.torch_model.TextGenerator` calls these.
    """

    def build_vocabulary(self, x: Inputs, y: Targets) -> None:
        """Build the vocabulary from the first training samples, if there is none yet."""

    def encode(self, x: Inputs) -> Tensor:
        """Return texts as rows of tokens; a tensor is returned unchanged."""

    def targets(self, y: Targets) -> Tensor:
        """Return answers as rows of tokens, padded with `IGNORE_INDEX`."""

    def teacher_forced(self, x: Tensor, y: Tensor) -> Tensor:
        """Return logits (samples, tokens, vocabulary) of the right answers' tokens, given those before each."""

    def generate(self, x: Inputs) -> np.ndarray:
        """Return a generated answer to each text."""


def mean_loss(task: Task, outputs: Tensor, y: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return the mean of a task's loss. For classes torch computes it at once: the same gradient to the bit, faster."""
    if type(task) is Classification:  # a subclass may have another loss
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs, y.long(), label_smoothing=label_smoothing)
    if label_smoothing:
        task = _smoothed(task, label_smoothing)
    return task.loss(outputs, y).mean()


def _smoothed(task: Task, label_smoothing: float) -> Task:
    if not isinstance(task, TextToText):
        raise UserError(f"label_smoothing={label_smoothing}: only classes and texts can be smoothed")
    return replace(task, label_smoothing=label_smoothing)
