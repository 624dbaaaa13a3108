"""The contract of answers."""

from __future__ import annotations

import numpy as np

from driftline.testing.fixtures import TASK
from driftline.types import Answers


def check_answers(answers: Answers, n: int, what: str) -> None:
    """Check that answers are one class index for each of n inputs, with probabilities as scores if any."""
    assert isinstance(answers, Answers), f"{what} must return Answers, not {type(answers).__name__}"
    prediction = np.asarray(answers.prediction)
    assert prediction.shape == (n,), f"{what} gives predictions of shape {prediction.shape} for {n} inputs"
    known = prediction.dtype.kind in "iu" and bool(((prediction >= 0) & (prediction < TASK.width)).all())
    assert known, f"{what} predicts values that are not class indices from 0 to {TASK.width - 1}"
    if answers.scores is not None:
        shape = answers.scores.shape
        assert shape == (n, TASK.width), f"{what} gives scores of shape {shape}, not {(n, TASK.width)}"
        proper = np.all(answers.scores >= 0) and np.allclose(answers.scores.sum(axis=1), 1, atol=1e-3)
        assert proper, f"{what} gives scores that are not probabilities"
