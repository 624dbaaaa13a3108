"""Empirical risk minimisation: train afresh each time labels arrive.

`erm` uses the latest period alone, as the temporal-metrics paper describes it; `erm-all` uses everything seen so far.
Departs from Wild-Time's Eval-Stream code, whose ERM accumulates history *and* starts from the previous weights:
here every model starts from the same initial weights, so that A(t, tau) depends on the data up to t alone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from driftline.learners.trained import Trained
from driftline.models.estimator import Estimator
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Samples, join


@register("method", "erm")
@dataclass
class ERM(Trained):
    """Train a new model on the latest labels (`history="period"`) or on all so far (`history="all"`)."""

    history: Literal["period", "all"] = "period"

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._initial = copy.deepcopy(model)
        self.seen: list[tuple[Any, np.ndarray]] = []

    def learn(self, x: Any, y: Any) -> None:
        if self.history == "all":
            self.seen.append((x, y))
            x, y = join([x for x, _ in self.seen]), np.concatenate([y for _, y in self.seen])
        if isinstance(self.model, Estimator):
            self.model.fit(x, y)
            return
        self.model.load_state_dict(self._initial.state_dict())
        self.new_optimizer()
        self.lessons = 0  # nor do the batches depend on how many lessons came before
        self.train(x, y)


register("method", "erm-all")(partial(ERM, history="all"))
