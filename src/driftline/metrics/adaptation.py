"""Accuracy of a model that adapts along a long stream: over time, and against the same model left alone.

Press et al., "RDumb: A simple approach that questions our progress in continual test-time adaptation", NeurIPS 2023,
call it a collapse if the mean accuracy is below that of the model that never adapts. `collapse` also says since when
and how deep: both are curves over the same windows of the same stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError
from driftline.metrics import metric

RDUMB = "Press et al. 2023, RDumb"
TENTH = 10
MOST, FEW, LEAST = 100, 10, 250  # windows at most, windows of a short stream, images in each window of a long one


@metric(
    "stream-accuracy",
    title="accuracy",
    formula="mean over images of [prediction = label]",
    better="higher",
    unit="share",
    within=(0, 1),
    paper=RDUMB,
    example=lambda rng: {"correct": rng.integers(0, 2, 20)},
)
def accuracy(correct: ArrayLike) -> Any:
    """How often it is right. Higher is better."""
    return np.asarray(correct, float).mean(axis=-1)


@metric(
    "batch-accuracy",
    title="accuracy by batches",
    formula="mean over batches of the share of right answers in a batch; a small last batch counts as a whole one",
    better="higher",
    unit="share",
    within=(0, 1),
    paper=RDUMB,
    example=lambda rng: {"correct": rng.integers(0, 2, 20), "batch": np.arange(20) // 8},
)
def batch_accuracy(correct: ArrayLike, batch: ArrayLike) -> Any:
    """How often it is right, each batch counting alike. Higher is better.

    >>> float(batch_accuracy([1, 1, 1, 0], batch=[0, 0, 0, 1]))
    0.5
    """
    right, inverse = np.asarray(correct, float), np.unique(np.asarray(batch), return_inverse=True)[1]
    return (np.bincount(inverse, right) / np.bincount(inverse)).mean()


@metric(
    "last-tenth",
    formula="mean over the last tenth of all images of [prediction = label]",
    better="higher",
    unit="share",
    within=(0, 1),
    paper=RDUMB,
    example=lambda rng: {"correct": rng.integers(0, 2, 20)},
)
def last_tenth(correct: ArrayLike) -> Any:
    """How often it is right at the end of the stream. Higher is better.

    >>> float(last_tenth([0] * 18 + [1, 0]))
    0.5
    """
    right = np.asarray(correct, float)
    return right[-max(1, len(right) // TENTH) :].mean()


@dataclass(frozen=True)
class Collapse:
    """How an adapting model stands to the one that never adapts."""

    gain: float
    """Mean accuracy less that of the frozen model."""
    collapsed: bool
    """Whether that is below 0."""
    since: int | None
    """The first window from which on it is behind in every one to the end; None if it ends level or ahead."""
    depth: float
    """How far it falls behind at worst, in a window; 0 if it never does."""
    adapted: int | None
    """The first window in which it is ahead by half of its greatest lead; None if it is never ahead."""


def collapse(adapting: ArrayLike, frozen: ArrayLike) -> Collapse:
    """Compare two curves of accuracy over the same windows.

    >>> found = collapse([0.5, 0.7, 0.6, 0.3, 0.1], [0.5, 0.5, 0.5, 0.5, 0.5])
    >>> found.collapsed, found.since, round(found.depth, 2), found.adapted, round(found.gain, 2)
    (True, 3, 0.4, 1, -0.06)
    >>> collapse([0.5, 0.4, 0.5], [0.5, 0.5, 0.5]).since is None  # it ends level
    True
    """
    ours, theirs = np.asarray(adapting, float), np.asarray(frozen, float)
    if ours.shape != theirs.shape or ours.ndim != 1 or not len(ours):
        raise UserError(f"curves over the same windows are compared, and these have {ours.shape} and {theirs.shape}")
    lead = ours - theirs
    behind = lead < 0
    ahead_last = np.flatnonzero(~behind)
    since = None if not behind[-1] else (int(ahead_last[-1]) + 1 if len(ahead_last) else 0)
    quick = np.flatnonzero(lead >= lead.max() / 2) if lead.max() > 0 else np.array([], int)
    return Collapse(
        gain=float(lead.mean()),
        collapsed=bool(lead.mean() < 0),
        since=since,
        depth=float(max(0.0, -lead.min())),
        adapted=int(quick[0]) if len(quick) else None,
    )


def windows(correct: ArrayLike) -> list[np.ndarray]:
    """The stream cut into up to 100 stretches of equal length, or one apart, of 250 images or more; 10 if it is short.

    >>> [len(windows(np.ones(n))) for n in (5, 100, 10_000, 1_000_000)]
    [5, 10, 40, 100]
    """
    values = np.asarray(correct, float)
    count = min(MOST, max(FEW, len(values) // LEAST))
    return [part for part in np.array_split(values, count) if len(part)]
