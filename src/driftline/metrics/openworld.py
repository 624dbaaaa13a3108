"""Metrics of the open-world benchmark: accuracy by class, by section of classes and over time.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED). All answers count, also those to
the first sample of a class. Novelty detection is in `metrics.novelty`, compute in `metrics.compute`; their main
functions can also be imported from here.

Head and tail: the paper's text has a class with exactly 50 samples in the tail (the default here), a caption has it in
the head, and its printed tables fit only if it is in neither. A section without classes is NaN, not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError, unknown_name
from driftline.metrics import metric
from driftline.metrics.compute import macs, total_macs, training_passes
from driftline.metrics.novelty import (
    NED,
    BestThreshold,
    best_f1,
    roc,
    threshold_curves,
    time_baseline,
    time_matched_auroc,
    time_score,
    unseen_auroc,
    unseen_flags,
)
from driftline.metrics.per_period import check_positive
from driftline.types import JsonObject, Score

__all__ = [
    "BestThreshold",
    "Rolling",
    "Section",
    "accuracy_with_unseen",
    "best_accuracy_with_unseen",
    "best_f1",
    "cross_sections",
    "few_shot_accuracy",
    "macs",
    "mean_class",
    "n_classes_seen",
    "overall",
    "per_class",
    "roc",
    "rolling",
    "threshold_curves",
    "time_baseline",
    "time_matched_auroc",
    "time_score",
    "total_macs",
    "training_passes",
    "unseen_auroc",
    "unseen_flags",
]

HEAD_THRESHOLD = 50
SECTIONS = ("novel-head", "pretrain-head", "novel-tail", "pretrain-tail")
Boundary = Literal["tail", "head", "neither"]


class Rolling(NamedTuple):
    """Accuracy in consecutive windows, where each ends, and how many samples it has."""

    value: np.ndarray
    end: np.ndarray
    n: np.ndarray


@dataclass(frozen=True, eq=False)
class Section:
    """Some of the classes, and the accuracy in each of them."""

    classes: np.ndarray
    accuracy: np.ndarray

    @property
    def mean(self) -> float:
        """The mean over classes; NaN without classes."""
        return float(self.accuracy.mean()) if len(self.accuracy) else float("nan")


def _example(rng: np.random.Generator) -> JsonObject:
    return {"correct": rng.integers(0, 2, 40), "labels": rng.integers(0, 5, 40)}


@metric(
    "overall",
    title="accuracy",
    formula="mean over samples of [prediction = label]",
    bounds=(0, 1),
    paper=NED,
    example=lambda rng: {"correct": rng.integers(0, 2, 20)},
)
def overall(correct: ArrayLike) -> Score:
    """Return the accuracy over the whole stream. Higher is better."""
    return np.asarray(correct, float).mean(axis=-1)


@metric(
    "mean-class",
    title="mean of classes",
    formula="mean over classes of (right answers / samples of the class)",
    bounds=(0, 1),
    paper=NED,
    example=_example,
)
def mean_class(correct: ArrayLike, labels: ArrayLike) -> float:
    """Return the mean of the accuracies of the classes. Higher is better.

    >>> round(mean_class([1, 0, 1, 1, 0, 0, 1, 1], list("ABABCBAC")), 6)
    0.611111
    """
    return float(per_class(correct, labels)[1].mean())


def per_class(correct: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the classes of the stream, the accuracy in each, and its number of samples."""
    right, truth = np.asarray(correct, float), np.asarray(labels)
    if right.ndim != 1 or right.shape != truth.shape or not len(right):
        raise UserError(f"give right or wrong and a label for each sample, not {right.shape} and {truth.shape}")
    classes, inverse, counts = np.unique(truth, return_inverse=True, return_counts=True)
    return classes, np.bincount(inverse, right) / counts, counts


def cross_sections(
    correct: ArrayLike,
    labels: ArrayLike,
    pretrain: ArrayLike,
    head: int = HEAD_THRESHOLD,
    at_boundary: Boundary = "tail",
) -> dict[str, Section]:
    """Return novel and pretrain classes, each with more than `head` samples in the stream (head) or not (tail).

    `at_boundary` says where a class with exactly `head` samples belongs. Higher is better.

    >>> found = cross_sections([1, 0, 1, 1, 0, 0, 1, 1], list("ABABCBAC"), pretrain=["A"], head=2)
    >>> {name: round(section.mean, 6) for name, section in found.items()}
    {'novel-head': 0.333333, 'pretrain-head': 1.0, 'novel-tail': 0.5, 'pretrain-tail': nan}
    """
    if at_boundary not in get_args(Boundary):
        raise unknown_name("at_boundary", at_boundary, get_args(Boundary))
    classes, accuracy, counts = per_class(correct, labels)
    trained = np.asarray(pretrain)
    old = np.isin(classes, trained) if trained.size else np.zeros(len(classes), bool)
    many = counts >= head if at_boundary == "head" else counts > head
    few = counts <= head if at_boundary == "tail" else counts < head
    parts = zip(SECTIONS, (~old & many, old & many, ~old & few, old & few), strict=True)
    return {name: Section(classes[mask], accuracy[mask]) for name, mask in parts}


@metric(
    "rolling",
    title="rolling accuracy",
    formula="mean of [prediction = label] over consecutive whole windows; samples after the last one are left out",
    paper=NED,
    example=lambda rng: {"correct": rng.integers(0, 2, 20), "window": 8},
)
def rolling(correct: ArrayLike, window: int = 5000) -> Rolling:
    """Return the accuracy in consecutive windows. Higher is better.

    Samples after the last whole window are left out; a stream shorter than a window is one window.

    >>> found = rolling([1, 0, 1, 1, 0, 0, 1, 1, 1], window=4)
    >>> found.value.tolist(), found.end.tolist(), found.n.tolist()
    ([0.75, 0.5], [4, 8], [4, 4])
    """
    check_positive("window", window)
    right = np.asarray(correct, float)
    if right.ndim != 1 or not len(right):
        raise UserError(f"give right or wrong for each sample, not {right.shape}")
    size = min(window, len(right))
    count = len(right) // size
    value = right[: count * size].reshape(count, size).mean(axis=1)
    return Rolling(value, size * np.arange(1, count + 1), np.full(count, size))


def n_classes_seen(labels: ArrayLike) -> np.ndarray:
    """Return the number of different classes up to each sample.

    >>> n_classes_seen(list("ABABC")).tolist()
    [1, 2, 2, 2, 3]
    """
    return np.cumsum(unseen_flags(labels))


def accuracy_with_unseen(correct: ArrayLike, unseen: ArrayLike, flagged: ArrayLike) -> float:
    """Return the accuracy if "unseen" is an answer too, right only for unseen samples. Higher is better.

    >>> correct, unseen = [1, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 0, 1, 0, 0, 0]
    >>> accuracy_with_unseen(correct, unseen, flagged=[0, 1, 0, 0, 0, 1, 0, 0])
    0.75
    """
    right, new, flags = np.asarray(correct, float), np.asarray(unseen, bool), np.asarray(flagged, bool)
    return float(np.where(flags, new, right).mean())


@metric(
    "k+1",
    title="counting 'unseen' (k+1)",
    formula="max over thresholds of the mean of [answer = label], where the answer is 'unseen' if the score is as high "
    "as the threshold, and right if the sample is unseen; an oracle's choice",
    paper=NED,
    example=lambda rng: {
        "correct": rng.integers(0, 2, 20),
        "unseen": rng.random(20) < 0.3,
        "score": rng.random(20).round(1),
    },
)
def best_accuracy_with_unseen(correct: ArrayLike, unseen: ArrayLike, score: ArrayLike) -> BestThreshold:
    """Return `accuracy_with_unseen` at the best threshold, which may flag nothing (inf). Higher is better.

    >>> best_accuracy_with_unseen([1, 0, 1, 0], [0, 1, 0, 0], score=[0.1, 0.9, 0.2, 0.3])
    BestThreshold(value=0.75, threshold=0.9, flagged=1)
    """
    right, new, strange = np.asarray(correct, float), np.asarray(unseen, float), np.asarray(score, float)
    if not right.shape == new.shape == strange.shape or right.ndim != 1 or not len(right) or np.isnan(strange).any():
        raise UserError("give right or wrong, a flag and a score, which is a number, for each sample")
    order = np.argsort(-strange, kind="stable")
    ranked = strange[order]
    changed = np.append(0, np.cumsum((new - right)[order]))
    whole = np.concatenate([[True], ranked[1:] != ranked[:-1], [True]])  # equal scores are flagged together
    best = int(np.where(whole, changed, -np.inf).argmax())
    threshold = float(ranked[best - 1]) if best else float("inf")
    return BestThreshold(float((right.sum() + changed[best]) / len(right)), threshold, best)


@metric(
    "episodic",
    formula="mean over n-shot k-way episodes of the share of their queries that is answered right",
    paper=NED,
    example=lambda rng: {"correct": rng.integers(0, 2, (6, 10))},
)
def few_shot_accuracy(correct: ArrayLike) -> float:
    """Return the accuracy over episodes x queries. Higher is better."""
    return float(np.asarray(correct, float).mean(axis=-1).mean())


def _section(name: str) -> Callable[..., float]:
    return lambda correct, labels, pretrain, head: cross_sections(correct, labels, pretrain, head)[name].mean


for _name in SECTIONS:
    _kind, _size = _name.split("-")
    metric(
        _name,
        title=f"{'new' if _kind == 'novel' else 'known'} classes, {'many' if _size == 'head' else 'few'} samples",
        formula=f"mean over {_kind} classes with {'more than' if _size == 'head' else 'at most'} `head` samples of "
        "(right answers / samples of the class); NaN if there are none",
        paper=NED,
        example=lambda rng: {**_example(rng), "pretrain": np.array([0, 1]), "head": 8},
    )(_section(_name))
