"""CFT: continual fine-tuning on the errors of each step, with an optional penalty on the weights.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from driftline.learners.replay.base import RefinementLearner
from driftline.registry import register


@register("method", "cft")
@dataclass
class CFT(RefinementLearner):
    """CFT: fine-tuning on the latest errors, with an optional penalty on the weights."""


register("method", "online-l2")(partial(CFT, penalty="l2"))
register("method", "online-ewc")(partial(CFT, penalty="ewc", penalty_weight=10.0))
