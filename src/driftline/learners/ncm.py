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
from typing import Any, ClassVar, Literal

import numpy as np

from driftline.learners.on_features import OnFeatures
from driftline.registry import register
from driftline.reveal import Turns
from driftline.tasks import Task
from driftline.types import Reveal, Samples


@register("method", "ncm")
@dataclass
class NearestClassMean(OnFeatures):
    """NCM: the class with the nearest mean feature. It never trains a network."""

    every: Literal[0] = 0

    sees: ClassVar[Reveal] = Reveal.ERRORS  # each label sets one mean right, whichever labels come
    quick: ClassVar[Mapping[str, str]] = {}

    @property
    def apart(self) -> bool:
        return True

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._means_now = self._exemplars.vectors  # the means are what samples are compared with

    def absorb(self, x: np.ndarray, label: int) -> None:
        self._exemplars.put_mean(label, x[0], self.sums, self.counts)

    def answer_up_to_lesson(self, outputs: np.ndarray, turns: Turns, at: int, latest: int) -> tuple[int, int]:
        """Answer a block in compiled code where no label comes late."""
        if turns.tell_many is None or not self.built_in():  # a user's subclass may learn otherwise
            return super().answer_up_to_lesson(outputs, turns, at, latest)
        done, first = len(outputs), turns.first + at
        rows = self.untold[first - self.oldest :][:done]
        turns.tell_many(outputs, *self._exemplars.putting_means(rows, self.sums, self.counts))
        self.heard += done
        return done, first + done


register("method", "prototypical")(partial(NearestClassMean, pretraining="prototypes"))
register("method", "meta-baseline")(partial(NearestClassMean, pretraining="meta-baseline"))
