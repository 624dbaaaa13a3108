"""One model, trained up to a split, on the periods before and after it: Wild-Time's Eval-Fix numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from driftline.metrics import metric
from driftline.types import JsonObject, Score

WILD_TIME = "Yao et al. 2022, Wild-Time"


def _example(rng: np.random.Generator) -> JsonObject:
    return {"accuracy": rng.uniform(0.3, 1.0, 5)}


@metric(
    "fix-id",
    title="training periods (ID)",
    formula="ID = sum_t n_t A_t / sum_t n_t over the held-out parts of the periods trained on",
    bounds=(0, 1),
    paper=WILD_TIME,
    example=lambda rng: {**_example(rng), "n": rng.integers(1, 50, 5)},
)
def in_distribution_accuracy(accuracy: ArrayLike, n: ArrayLike) -> Score:
    """Return the accuracy on the pooled held-out examples: large periods count more. Higher is better.

    >>> round(float(in_distribution_accuracy([0.9, 0.6], n=[1, 2])), 6)
    0.7
    """
    return np.average(np.asarray(accuracy, float), axis=-1, weights=np.asarray(n, float))


@metric(
    "fix-ood",
    title="later periods (OOD)",
    formula="OOD = mean over later periods of A_tau, each period counted once",
    bounds=(0, 1),
    paper=WILD_TIME,
    example=_example,
)
def ood_mean(accuracy: ArrayLike) -> Score:
    """Return the unweighted mean over later periods. Higher is better."""
    return np.asarray(accuracy, float).mean(axis=-1)


@metric(
    "fix-worst",
    title="worst later period",
    formula="worst = min over later periods of A_tau",
    bounds=(0, 1),
    paper=WILD_TIME,
    example=_example,
)
def ood_worst(accuracy: ArrayLike) -> Score:
    """Return the accuracy in the worst later period. Higher is better."""
    return np.asarray(accuracy, float).min(axis=-1)


@metric(
    "final-accuracy",
    formula="accuracy at the last step = mean over its test examples of [prediction = label]",
    bounds=(0, 1),
    paper="Ji, Alaa, Sontag, Seq-to-Final",
    example=lambda rng: {"correct": rng.integers(0, 2, 20)},
)
def final_accuracy(correct: ArrayLike) -> Score:
    """Return the accuracy on the final test set. Higher is better."""
    return np.asarray(correct, float).mean(axis=-1)
