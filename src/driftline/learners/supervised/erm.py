"""Empirical risk minimization (ERM): train from scratch each time labels arrive.

`erm` uses the latest period alone, as the temporal-metrics paper describes it; `erm-all` uses everything so far.
Departs from Wild-Time's Eval-Stream code, whose ERM accumulates history *and* starts from the previous weights:
here every model starts from the same initial weights, so that A(t, tau) depends on the data up to t alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.learners.supervised.base import Start, SupervisedLearner
from driftline.registry import register
from driftline.types import Inputs, Targets


@register("method", "erm")
@dataclass
class ERM(SupervisedLearner):
    """ERM on the latest labels alone."""

    def learn(self, x: Inputs, y: Targets) -> None:
        self.train_from_scratch(x, y)


@register("method", "erm-all")
@dataclass
class ERMAll(SupervisedLearner):
    """ERM on all labels so far."""

    start: Start = "fresh"  # start of each training: the initial weights, or the previous ones

    def learn(self, x: Inputs, y: Targets) -> None:
        self.learn_cumulative(x, y)
