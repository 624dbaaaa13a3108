"""Accuracy of a model that adapts along a long stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from driftline.metrics import metric
from driftline.types import Score

RDUMB = "Press et al. 2023, RDumb"
TENTHS = 10
MAX_WINDOWS, SHORT_WINDOWS = 100, 10  # the latter for a short stream
MIN_IMAGES = 250  # in each window of a long stream


@metric(
    "stream-accuracy",
    title="accuracy",
    formula="mean over images of [prediction = label]",
    bounds=(0, 1),
    paper=RDUMB,
    example=lambda rng: {"correct": rng.integers(0, 2, 20)},
)
def stream_accuracy(correct: ArrayLike) -> Score:
    """Return the accuracy over the stream. Higher is better."""
    return np.asarray(correct, float).mean(axis=-1)


@metric(
    "batch-accuracy",
    title="accuracy by batches",
    formula="mean over batches of the share of right answers in a batch; a small last batch counts as a whole one",
    bounds=(0, 1),
    paper=RDUMB,
    example=lambda rng: {"correct": rng.integers(0, 2, 20), "batch": np.arange(20) // 8},
)
def batch_accuracy(correct: ArrayLike, batch: ArrayLike) -> Score:
    """Return the mean of the accuracies of the batches. Higher is better.

    >>> float(batch_accuracy([1, 1, 1, 0], batch=[0, 0, 0, 1]))
    0.5
    """
    right, inverse = np.asarray(correct, float), np.unique(np.asarray(batch), return_inverse=True)[1]
    return (np.bincount(inverse, right) / np.bincount(inverse)).mean()


@metric(
    "last-tenth",
    formula="mean over the last tenth of all images of [prediction = label]",
    bounds=(0, 1),
    paper=RDUMB,
    example=lambda rng: {"correct": rng.integers(0, 2, 20)},
)
def final_tenth_accuracy(correct: ArrayLike) -> Score:
    """Return the accuracy in the last tenth of the stream. Higher is better.

    >>> float(final_tenth_accuracy([0] * 18 + [1, 0]))
    0.5
    """
    right = np.asarray(correct, float)
    return right[-max(1, len(right) // TENTHS) :].mean()


def split_windows(correct: ArrayLike) -> list[np.ndarray]:
    """Cut the stream into up to 100 windows of equal length (+-1), of 250 images or more; 10 if it is short.

    >>> [len(split_windows(np.ones(n))) for n in (5, 100, 10_000, 1_000_000)]
    [5, 10, 40, 100]
    """
    values = np.asarray(correct, float)
    count = min(MAX_WINDOWS, max(SHORT_WINDOWS, len(values) // MIN_IMAGES))
    return [part for part in np.array_split(values, count) if len(part)]
