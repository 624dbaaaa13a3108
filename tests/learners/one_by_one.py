"""Streams of samples that come one by one, and the plain route through them: ask about one, tell one label, again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftline import models
from driftline.learners.base import Learner
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Answers, Reveal, Samples, Step

WIDTH = 6


def task_of(classes: int) -> Classification:
    return Classification(tuple(str(k) for k in range(classes)))


def stream(n: int, classes: int, block: int, seed: int = 0, width: int = WIDTH) -> list[Step]:
    """Points around one centre per class, in steps of a block."""
    rng = np.random.default_rng(seed)
    centres = 2 * rng.normal(size=(classes, width))
    y = rng.integers(0, classes, n)
    x = (centres[y] + rng.normal(size=(n, width))).astype(np.float32)
    whole = Samples(x, y)
    starts = range(0, n, block)
    return [Step(k, str(k), whole[i : i + block], one_by_one=True) for k, i in enumerate(starts)]


def prepared(learner: Any, classes: int, model: str = "linear", width: int = WIDTH, network: Any = None) -> Any:
    """A learner ready to start; features of the model "linear" are the inputs themselves."""
    learner.seed = Seed(5)
    learner.prepare(network or models.build(model, (width,), classes, Seed(2)), task_of(classes))
    return learner


def after_labels(learner: Any, x: Sequence[Sequence[float]], y: Sequence[int]) -> Any:
    """The learner, after these labels."""
    learner.learn(np.array(x, np.float32), np.array(y))
    return learner


def labels(classes: int, **rule: Any) -> RevealPolicy:
    return RevealPolicy(task_of(classes), Reveal.LABELS, Seed(9), **rule)


def walk(learner: Any, steps: Sequence[Step], reveal: RevealPolicy, plainly: bool = False) -> Answers:
    """All answers: the learner's own way through the steps, or one sample after another."""
    go = Learner.answer_one_by_one if plainly else type(learner).answer_one_by_one
    return Answers.concat([go(learner, reveal.feed(step)) for step in steps])


def must_equal(one: Answers, other: Answers) -> None:
    """To the last digit."""
    np.testing.assert_array_equal(one.prediction, other.prediction)
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.distance, other.distance)
