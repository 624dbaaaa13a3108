"""The contracts of learners, streams and metrics, as checks that can be run on any of them.

Everything that is registered passes these, and so should whatever you add: call them in a test of your own. A check
returns nothing if all is well and raises an AssertionError with a sentence that says what is wrong.

>>> from driftline.learners.frozen import Frozen
>>> check_learner(Frozen)
"""

from driftline.state import digest
from driftline.testing.learner import check_learner
from driftline.testing.metric import check_metric
from driftline.testing.stream import check_stream

__all__ = ["check_learner", "check_metric", "check_stream", "digest"]
