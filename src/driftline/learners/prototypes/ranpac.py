"""RanPAC: ridge regression of class indicators on a random projection of frozen features.

McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for Continual Learning", NeurIPS 2023. With f the
features and W a matrix of standard normal numbers, drawn once,

    h = relu(f W),   G <- G + h h',   Q <- Q + h onehot(y)',   scores of all classes: h (G + ridge I)^-1 Q

`ridge` is one of 1e-8, 1e-7, ... 1e8: of each delivery of labels the first 80 % are fitted, and the value with the
least squared error on the others counts until the next delivery. G and Q are sums over all deliveries, so that only
this choice depends on how samples are divided.

The ridge is at least 1e-13 of the trace of G. A smaller one is lost in the rounding of double precision, and then
samples unlike those so far get arbitrary scores.

Departs from the paper: 1,000 projections instead of 10,000, because G has their square; the first phase, which tunes
an adapter on the first task, is left out; and classes without samples are never answered. Where labels come one by one,
the ridge stays 1 unless it is set, and each label costs a solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from driftline.learners.prototypes.base import PrototypeLearner
from driftline.learners.prototypes.class_vectors import ClassVectors
from driftline.learners.settings import Count, Positive
from driftline.registry import register
from driftline.reveal import RevealedLabels
from driftline.tasks import Task
from driftline.training.mac_counter import mac_counter_of
from driftline.types import Inputs, Network, Reveal, Samples, Targets

RIDGES = 10.0 ** np.arange(-8, 9)
SMALLEST_SHARE = 1e-13  # of the trace of G: a smaller ridge is lost in its rounding, and noise would decide


@register("method", "ranpac")
@dataclass
class RanPAC(PrototypeLearner):
    """RanPAC: ridge regression on randomly projected features. It never trains a network."""

    train_every: Literal[0] = 0
    projections: Count = 1000  # number of random projections; the paper: 10,000
    ridge: Positive | None = None  # strength of the ridge; None: chosen on each delivery of labels

    min_reveal: ClassVar[Reveal] = Reveal.ERRORS
    quick: ClassVar[Mapping[str, str]] = {}
    transient = frozenset({"_projection"})
    cost_free = frozenset({"ridge"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        classes, width = self.sums.shape
        self._projection = self.seed.child("projection").numpy().standard_normal((width, self.projections))
        self.gram = np.zeros((self.projections, self.projections))
        self.sums = np.zeros((classes, self.projections))
        self.present_ridge = 1.0 if self.ridge is None else self.ridge
        self._class_vectors = ClassVectors(classes, self.projections, euclidean=False)

    @property
    def uses_distance(self) -> bool:
        return False

    def query_features(self, features: np.ndarray) -> np.ndarray:
        mac_counter_of(self.model).add(forward=features.size * self.projections)
        return self.hidden(features).astype(np.float32)

    def hidden(self, features: np.ndarray) -> np.ndarray:
        """Return projected features, in double precision."""
        found: np.ndarray = np.maximum(features @ self._projection, 0)
        return found

    def class_vectors(self, which: slice) -> np.ndarray:
        ridge = max(self.present_ridge, SMALLEST_SHARE * np.trace(self.gram))
        regularized = self.gram + ridge * np.eye(self.projections)
        return np.linalg.solve(regularized, self.sums.T).T[which].astype(np.float32)

    def update_class(self, x: np.ndarray, label: int) -> None:
        self.accumulate(self.hidden(x), np.array([label]))

    def accumulate(self, hidden: np.ndarray, y: np.ndarray) -> None:
        """Add samples to the sums."""
        self.gram += hidden.T @ hidden
        np.add.at(self.sums, y, hidden)
        np.add.at(self.counts, y, 1)

    def learn(self, x: Inputs, y: Targets) -> None:
        hidden = self.hidden(self.features(x))
        self.accumulate(hidden, y)
        if self.ridge is None and len(y) > 1:
            self.present_ridge = best_ridge(hidden, np.eye(len(self.sums))[y])
            mac_counter_of(self.model).add(forward=best_ridge_macs(len(y), self.projections, len(self.sums)))
        self.solve(len(y))

    def learn_revealed(self, shown: RevealedLabels) -> int:
        latest = super().learn_revealed(shown)
        self.solve(len(shown.y))
        return latest

    def solve(self, n_labels: int) -> None:
        """Recompute the vectors of all classes after this many labels, and count the work of both."""
        self.rebuild_class_vectors()
        (width, m), classes = self._projection.shape, len(self.sums)
        mac_counter_of(self.model).add(forward=n_labels * (width * m + m**2) + m**3 // 3 + classes * m**2)


def best_ridge(hidden: np.ndarray, indicators: np.ndarray) -> float:
    """Return the ridge that fits the first 80 % of samples and has the least squared error on the others."""
    n = int(0.8 * len(hidden))
    u, s, vt = np.linalg.svd(hidden[:n], full_matrices=False)
    seen, fitted = hidden[n:] @ vt.T, u.T @ indicators[:n]
    errors = [np.square(seen * (s / (s**2 + ridge)) @ fitted - indicators[n:]).mean() for ridge in RIDGES]
    return float(RIDGES[np.argmin(errors)])


def best_ridge_macs(n: int, projections: int, classes: int) -> int:
    """Return the work of choosing the ridge: a singular value decomposition, then predictions for each value."""
    fitted = int(0.8 * n)
    small, large = sorted((fitted, projections))
    predictions = (n - fitted) * small * (projections + len(RIDGES) * classes)
    return 3 * large * small**2 + 10 * small**3 + small * fitted * classes + predictions
