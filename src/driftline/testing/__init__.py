"""Checks of the contracts of learners, streams, metrics and label rules.

Everything that is registered passes them. Call them in your own tests for what you add. A check raises an
AssertionError that says what is wrong.

>>> from driftline.learners.frozen import Frozen
>>> check_learner(Frozen)
"""

from driftline.io.serialization import digest
from driftline.testing.label_rule import check_label_rule
from driftline.testing.learner import check_learner
from driftline.testing.metric import check_metric
from driftline.testing.stream import check_stream

__all__ = ["check_label_rule", "check_learner", "check_metric", "check_stream", "digest"]
