"""The stages of a plan, one class per kind."""

from driftline.engine.stages.base import Stage, StageContext
from driftline.engine.stages.calibrate import Calibrate, CalibrationPart
from driftline.engine.stages.fit import Fit
from driftline.engine.stages.pretrain import Pretrain
from driftline.engine.stages.search_round import SearchRound
from driftline.engine.stages.stream_run import SearchRun, StreamRun

__all__ = [
    "Calibrate",
    "CalibrationPart",
    "Fit",
    "Pretrain",
    "SearchRound",
    "SearchRun",
    "Stage",
    "StageContext",
    "StreamRun",
]
