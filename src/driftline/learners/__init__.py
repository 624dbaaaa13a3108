"""Methods, and the base classes for your own.

A method that needs no labels extends `Sharpened` (a loss on its outputs) or `NormAdapted`; one that trains on labels
`Trained`, or `Pooled` if it trains on all of them; one that keeps old samples adds a `Reservoir`; one that compares
features with class means extends `OnFeatures`. Anything else extends `Learner`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline import lazy

if TYPE_CHECKING:
    from driftline.learners.base import Learner
    from driftline.learners.buffers import ReservoirBuffer
    from driftline.learners.prototypes.base import PrototypeLearner
    from driftline.learners.sequence.base import PlannedLearner
    from driftline.learners.supervised.base import SupervisedLearner
    from driftline.learners.supervised.cumulative import CumulativeLearner
    from driftline.learners.test_time.base import NormAdapter, NormGradientAdapter, entropy

__all__ = [
    "CumulativeLearner",
    "Learner",
    "NormAdapter",
    "NormGradientAdapter",
    "PlannedLearner",
    "PrototypeLearner",
    "ReservoirBuffer",
    "SupervisedLearner",
    "entropy",
]

__getattr__, __dir__ = lazy.exports(
    __name__,
    {
        "Learner": "driftline.learners.base:Learner",
        "NormAdapted": "driftline.learners.test_time.base:NormAdapter",
        "OnFeatures": "driftline.learners.prototypes.base:PrototypeLearner",
        "Pooled": "driftline.learners.supervised.cumulative:CumulativeLearner",
        "Reservoir": "driftline.learners.buffers:ReservoirBuffer",
        "Sharpened": "driftline.learners.test_time.base:NormGradientAdapter",
        "Staged": "driftline.learners.sequence.base:PlannedLearner",
        "Trained": "driftline.learners.supervised.base:SupervisedLearner",
        "entropy": "driftline.learners.test_time.base:entropy",
    },
)
