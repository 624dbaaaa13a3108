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

from driftline.learners.prototypes.base import PrototypeLearner
from driftline.registry import register
from driftline.types import Reveal


@register("method", "ncm")
@dataclass
class NearestClassMean(PrototypeLearner):
    """NCM: the class with the nearest mean feature. It never trains a network."""

    train_every: Literal[0] = 0

    min_reveal: ClassVar[Reveal] = Reveal.ERRORS  # any label updates one mean
    quick: ClassVar[Mapping[str, str]] = {}

    @property
    def uses_distance(self) -> bool:
        return True


register("method", "prototypical")(partial(NearestClassMean, pretraining="prototypes"))
register("method", "meta-baseline")(partial(NearestClassMean, pretraining="meta-baseline"))
