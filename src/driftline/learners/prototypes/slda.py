"""SLDA: deep streaming linear discriminant analysis, class means and one covariance of frozen features.

Hayes and Kanan, "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis", CVPR workshops 2020.
With f the features, mu_y the mean and c the number of samples of class y, N that of all classes and S the covariance,
each label changes

    d = f - mu_y,   S <- (N S + c / (c + 1) d d') / (N + 1),   mu_y <- mu_y + d / (c + 1)
    score of class k: <L mu_k, f> - 1/2 <mu_k, L mu_k>,   L = inverse of (1 - shrinkage) S + shrinkage I

S is then the covariance within classes, whatever the order of samples. The published recursion, `as_published`, has
N / (N + 1) in place of c / (c + 1), and so counts the distance of each class's first sample from the zero vector.

Departs from the authors' code: it lets classes without samples compete with a score of 0; here they are never
answered. It starts from means and covariance of a base set; here the stream alone gives both. L is computed once per
delivery of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from driftline.learners.prototypes.base import PrototypeLearner
from driftline.learners.prototypes.class_vectors import ClassVectors
from driftline.learners.settings import Inside
from driftline.registry import register
from driftline.reveal import RevealedLabels
from driftline.tasks import Task
from driftline.training.mac_counter import mac_counter_of
from driftline.types import Inputs, Network, Reveal, Samples, Targets


@register("method", "slda")
@dataclass
class StreamingLDA(PrototypeLearner):
    """SLDA: linear discriminant analysis of features, updated by every label. It never trains a network."""

    train_every: Literal[0] = 0
    shrinkage: Inside = 1e-4  # share of the identity in the covariance
    as_published: bool = False  # the covariance by the published recursion, not the one within classes

    min_reveal: ClassVar[Reveal] = Reveal.ERRORS
    quick: ClassVar[Mapping[str, str]] = {}
    cost_free = frozenset({"shrinkage"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        width = self.sums.shape[1]
        self.covariance = np.zeros((width, width))
        self._class_vectors = ClassVectors(task.width, width + 1, euclidean=False)  # the last column is the constant

    @property
    def uses_distance(self) -> bool:
        return False

    def query_features(self, features: np.ndarray) -> np.ndarray:
        return np.hstack([features, np.ones((len(features), 1), np.float32)])

    def class_vectors(self, which: slice) -> np.ndarray:
        means = self.sums[which] / np.maximum(self.counts[which], 1)[:, None]
        shrunk = (1 - self.shrinkage) * self.covariance + self.shrinkage * np.eye(len(self.covariance))
        vectors = np.linalg.solve(shrunk, means.T).T
        return np.hstack([vectors, -(means * vectors).sum(axis=1, keepdims=True) / 2]).astype(np.float32)

    def update_class(self, x: np.ndarray, label: int) -> None:
        n, c = self.counts.sum(), self.counts[label]
        deviation = x[0] - self.sums[label] / max(c, 1)
        share = n / (n + 1) if self.as_published else c / (c + 1)
        self.covariance = (n * self.covariance + share * np.outer(deviation, deviation)) / (n + 1)
        self.sums[label] += x[0]
        self.counts[label] += 1

    def learn(self, x: Inputs, y: Targets) -> None:
        super().learn(x, y)
        self.solve(len(y))

    def learn_revealed(self, shown: RevealedLabels) -> int:
        latest = super().learn_revealed(shown)
        self.solve(len(shown.y))
        return latest

    def solve(self, n_labels: int) -> None:
        """Recompute the vectors of all classes after this many labels, and count the work of both."""
        self.rebuild_class_vectors()
        classes, width = self.sums.shape
        mac_counter_of(self.model).add(forward=n_labels * width**2 + width**3 // 3 + classes * width**2)
