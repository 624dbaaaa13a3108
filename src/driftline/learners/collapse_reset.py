"""Reset of any method when its answers collapse, compared with a frozen model on the same inputs.

`{name: collapse-reset, method: tent, max_gap: 0.3}`. Per batch of B inputs, a and r are the shares of the classes that
the method and the frozen model predict. The frozen model is the method before its first step, with the same
normalization. Running shares over about n inputs:

    A <- (1 - k) A + k a,   R <- (1 - k) R + k r,   k = B / n (B / the inputs so far, until there are n)

A method that answers fewer and fewer classes loses entropy: if H(R) - H(A) > `max_gap`, the method returns to its state
before the first step, and A becomes R. The answers of that batch are given already.

Resets by a signal are not new. ASR (Lim et al., "When and Where to Reset Matters for Long-Term Test-Time Adaptation",
ICLR 2026) compares the entropy of a batch's mean logits with its own running value, restores the later layers only and
adds a penalty; SAR resets when the mean loss is low. Here the reference is the frozen model on the same inputs, so that
imbalanced or correlated labels, which lower both entropies, do not look like a collapse; the reset is complete; and
there is one threshold, in nats. Predicted classes are counted instead of averaging probabilities, because over few
inputs the entropy of mean probabilities also falls when answers merely become confident. The price is one more forward
pass per batch. A wrong but balanced solution has no gap, and a method that follows imbalanced labels better than the
frozen model has one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from driftline.errors import RequirementError
from driftline.learners.periodic_reset import Snapshot, WrappingLearner
from driftline.learners.settings import Count, NonNegative
from driftline.registry import register
from driftline.tasks import Classification, Task
from driftline.types import Answers, Inputs, Network, Samples


@register("method", "collapse-reset")
@dataclass
class CollapseReset(WrappingLearner):
    """Another method, reset when it predicts fewer classes than the frozen model does on the same inputs."""

    max_gap: NonNegative = 0.3  # entropy of predicted classes below the frozen model's, in nats, that causes a reset
    window: Count | None = None  # inputs in the running shares; None: 20 per class and at least 200

    transient = frozenset({"_frozen", "_snapshot"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        if not isinstance(task, Classification):
            raise RequirementError("a classification task", "collapse-reset needs a classification task")
        self._frozen = self.new_method(copy.deepcopy(model), task, upstream)
        super().prepare(model, task, upstream)
        self._snapshot = Snapshot(self.wrapped)
        self.shares = np.zeros((2, task.width))  # of predicted classes: the method's, the frozen model's
        self.n_inputs = 0
        self.n_resets = 0

    @property
    def gap(self) -> float:
        """The entropy of the classes that the frozen model predicts, minus that of the method's."""
        method, frozen = (entropy_of_shares(shares) for shares in self.shares)
        return frozen - method

    def answer(self, x: Inputs) -> Answers:
        frozen, answers = self._frozen.predict(x), super().answer(x)
        self._follow(answers.prediction, frozen.prediction)
        if self.gap > self.max_gap:
            self._snapshot.restore_into(self.wrapped)
            self.shares[0] = self.shares[1]
            self.n_resets += 1
        return answers

    def diagnostics(self) -> Mapping[str, float]:
        """Return the method's own diagnostics, the gap after this step and the number of resets."""
        return {**super().diagnostics(), "entropy below the frozen model's": self.gap, "resets": float(self.n_resets)}

    def _follow(self, *predictions: np.ndarray) -> None:
        """Move the running shares to the predictions of a batch."""
        width, n = self.shares.shape[1], len(predictions[0])
        self.n_inputs += n
        window = max(200, 20 * width) if self.window is None else self.window
        rate = min(1.0, n / min(window, self.n_inputs))
        batch = np.stack([np.bincount(prediction, minlength=width) / n for prediction in predictions])
        self.shares = (1 - rate) * self.shares + rate * batch


def entropy_of_shares(shares: np.ndarray) -> float:
    """Return the entropy of shares, in nats.

    >>> round(entropy_of_shares(np.array([0.5, 0.5, 0.0])), 4)
    0.6931
    """
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())
