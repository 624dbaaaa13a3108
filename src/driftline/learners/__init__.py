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
    from driftline.learners.norm_adapt import NormAdapted, Sharpened, entropy
    from driftline.learners.on_features import OnFeatures
    from driftline.learners.pooled import Pooled
    from driftline.learners.staged import Staged
    from driftline.learners.trained import Trained
    from driftline.training.memory import Reservoir

__all__ = ["Learner", "NormAdapted", "OnFeatures", "Pooled", "Reservoir", "Sharpened", "Staged", "Trained", "entropy"]

__getattr__, __dir__ = lazy.exports(
    __name__,
    {
        "Learner": "driftline.learners.base:Learner",
        "NormAdapted": "driftline.learners.norm_adapt:NormAdapted",
        "OnFeatures": "driftline.learners.on_features:OnFeatures",
        "Pooled": "driftline.learners.pooled:Pooled",
        "Reservoir": "driftline.training.memory:Reservoir",
        "Sharpened": "driftline.learners.norm_adapt:Sharpened",
        "Staged": "driftline.learners.staged:Staged",
        "Trained": "driftline.learners.trained:Trained",
        "entropy": "driftline.learners.norm_adapt:entropy",
    },
)
