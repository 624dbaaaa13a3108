"""river's streaming classifiers, which learn from one sample at a time.

A river model has no tensors to save, and Driftline reads no pickles. Its state is therefore the rows and labels it has
learned; restoring learns them again, in order, which gives the same model because its random numbers have a seed. So
the model's own memory is bounded, as river promises, but what is kept here for resuming is not: 4 bytes per
feature and 8 per label, 5 MB for the 37,000 portraits of Yearbook with 32 features. Restoring takes as long as learning
did: about a minute for these with the tree, three with the forest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from river.forest import ARFClassifier
from river.naive_bayes import GaussianNB
from river.tree import HoeffdingAdaptiveTreeClassifier

from driftline.seeds import Seed

ClassifierKind = Literal["hat", "arf", "nb"]

CLASSIFIERS: dict[ClassifierKind, Callable[[int], Any]] = {
    "hat": lambda seed: HoeffdingAdaptiveTreeClassifier(seed=seed),
    "arf": lambda seed: ARFClassifier(seed=seed),
    "nb": lambda seed: GaussianNB(),
}


class RiverClassifier:
    """A Hoeffding adaptive tree, an adaptive random forest or Gaussian naive Bayes with river's own settings."""

    def __init__(self, kind: ClassifierKind, classes: int, seed: Seed) -> None:
        self.history: list[tuple[np.ndarray, np.ndarray]] = []
        self._new = lambda: CLASSIFIERS[kind](seed.value % 2**32)
        self._classes = classes
        self._model = self._new()

    def learn(self, rows: np.ndarray, y: np.ndarray) -> None:
        """Learn from each sample once, in order."""
        self.history.append((rows, y))
        for row, label in zip(to_dicts(rows), y.tolist(), strict=True):
            self._model.learn_one(row, label)

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """Return log-probabilities per class; equal ones before the first sample."""
        scores = np.zeros((len(rows), self._classes))
        for i, row in enumerate(
            to_dicts(rows) if self.history else ()
        ):  # a forest that predicts before it learns would grow trees
            for label, probability in self._model.predict_proba_one(row).items():
                scores[i, label] = probability
        scores[~(scores.sum(axis=1) > 0)] = 1.0
        with np.errstate(divide="ignore"):
            return np.log(scores)

    def state(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return list(self.history)

    def restore(self, state: list[tuple[np.ndarray, np.ndarray]]) -> None:
        self.history, self._model = [], self._new()
        for rows, y in state:
            self.learn(rows, y)


def to_dicts(rows: np.ndarray) -> Iterator[dict[int, float]]:
    """Return samples in river's format.

    >>> list(to_dicts(np.array([[0.5, 1.0]])))
    [{0: 0.5, 1: 1.0}]
    """
    return (dict(enumerate(row)) for row in rows.tolist())
