"""Driftline measures learners in a world that changes over time.

>>> import driftline
>>> spec = {"benchmark": "timeline", "data": "digits", "model": "logistic-regression", "methods": ["erm"], "seeds": 1}
>>> record = driftline.run(spec, runs="my-runs")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline import lazy
from driftline.version import __version__

if TYPE_CHECKING:
    from driftline.auditing import audit
    from driftline.engine.costs.forecast import forecast as plan
    from driftline.engine.run import run
    from driftline.learners.base import Learner
    from driftline.record.run import load
    from driftline.registry import register
    from driftline.report.figures.make import figure
    from driftline.report.tables.make import table
    from driftline.testing import check_learner
    from driftline.types import Answers, Reveal, Samples

__all__ = [
    "Answers",
    "Learner",
    "Reveal",
    "Samples",
    "__version__",
    "audit",
    "check_learner",
    "figure",
    "load",
    "plan",
    "register",
    "run",
    "table",
]

__getattr__, __dir__ = lazy.exports(
    __name__,
    {
        "Answers": "driftline.types:Answers",
        "Learner": "driftline.learners.base:Learner",
        "Reveal": "driftline.types:Reveal",
        "Samples": "driftline.types:Samples",
        "audit": "driftline.auditing:audit",
        "check_learner": "driftline.testing:check_learner",
        "figure": "driftline.report.figures.make:figure",
        "load": "driftline.record.run:load",
        "plan": "driftline.engine.costs.forecast:forecast",
        "register": "driftline.registry:register",
        "run": "driftline.engine.run:run",
        "table": "driftline.report.tables.make:table",
    },
)
