"""NCM: nearest class mean, also on features of other pretrainings.

As in Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED): the answer is the class
with the nearest mean, right after every label. Raw outputs are minus squared Euclidean distances, and so the recorded
distance is the smallest squared distance. Departs from the reference code, which lets classes without data compete as
zero vectors and takes means over augmented images, and from the printed formula, which lacks 1/n.

Prototypical networks (Snell et al., NeurIPS 2017) and Meta-Baseline (Chen et al., ICCV 2021) differ in how the network
is trained before the stream starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from driftline.learners.prototypes.base import PrototypeLearner
from driftline.registry import register
from driftline.reveal import LabelFeed
from driftline.tasks import Task
from driftline.types import Network, Reveal, Samples


@register("method", "ncm")
@dataclass
class NearestClassMean(PrototypeLearner):
    """NCM: the class with the nearest mean feature. It never trains a network."""

    train_every: Literal[0] = 0

    min_reveal: ClassVar[Reveal] = Reveal.ERRORS  # each label sets one mean right, whichever labels come
    quick: ClassVar[Mapping[str, str]] = {}

    @property
    def uses_distance(self) -> bool:
        return True

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._means_float32 = self._class_vectors.vectors  # the means are what samples are compared with

    def update_class(self, x: np.ndarray, label: int) -> None:
        self._class_vectors.add_to_mean(label, x[0], self.sums, self.counts)

    def answer_until_training(self, outputs: np.ndarray, feed: LabelFeed, at: int, latest: int) -> tuple[int, int]:
        """Answer a block in compiled code where no label comes late."""
        if feed.reveal_many is None or not self.is_built_in():  # a user's subclass may learn otherwise
            return super().answer_until_training(outputs, feed, at, latest)
        done, first = len(outputs), feed.first + at
        rows = self.pending_features[first - self.first_pending :][:done]
        feed.reveal_many(outputs, *self._class_vectors.mean_updater(rows, self.sums, self.counts))
        self.n_labels += done
        return done, first + done


register("method", "prototypical")(partial(NearestClassMean, pretraining="prototypes"))
register("method", "meta-baseline")(partial(NearestClassMean, pretraining="meta-baseline"))
