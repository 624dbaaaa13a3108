"""Methods, and the base classes for your own.

A method that needs no labels extends `NormAdapter` and writes a loss. A method that trains on labels extends
`SupervisedLearner`. A method that replays old samples holds a `ReservoirBuffer`. A method that compares features with
class means extends `PrototypeLearner`, one that searches its own hyper-parameters `PlannedLearner`. Everything else
extends `Learner`.
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
    from driftline.learners.test_time.base import NormAdapter, entropy

__all__ = [
    "Learner",
    "NormAdapter",
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
        "NormAdapter": "driftline.learners.test_time.base:NormAdapter",
        "PrototypeLearner": "driftline.learners.prototypes.base:PrototypeLearner",
        "ReservoirBuffer": "driftline.learners.buffers:ReservoirBuffer",
        "PlannedLearner": "driftline.learners.sequence.base:PlannedLearner",
        "SupervisedLearner": "driftline.learners.supervised.base:SupervisedLearner",
        "entropy": "driftline.learners.test_time.base:entropy",
    },
)
