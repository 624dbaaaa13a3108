"""Retraining on a schedule: never, at every k-th delivery of labels, or at every one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from driftline.learners.retraining.retrainer import PolicyLog, Retrainer
from driftline.learners.settings import Count, CountOrZero
from driftline.learners.supervised.base import SupervisedLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Inputs, Network, Samples, Targets


@dataclass
class ScheduledRetraining(SupervisedLearner):
    """Retraining at every k-th delivery of labels."""

    k: CountOrZero = 4  # label deliveries between retrainings; 0: no retraining after the first labels
    window: Count | None = None  # number of latest label deliveries to train on; None: all
    max_samples: Count | None = None  # maximum number of training samples, drawn uniformly from more; None: no limit

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.retrainer = Retrainer(self.window, self.max_samples, self.seed, deployed=upstream is not None)

    def log(self) -> PolicyLog:
        """Return what the policy has done so far."""
        return self.retrainer.log()

    def learn(self, x: Inputs, y: Targets) -> None:
        due = self.k > 0 and self.retrainer.n_batches % self.k == 0
        self.retrainer.learn(self, x, y, retrain=due or not self.retrainer.deployed)


register("method", "retrain-every-k")(ScheduledRetraining)
register("method", "train-once")(partial(ScheduledRetraining, k=0))
register("method", "retrain-window")(partial(ScheduledRetraining, k=1, window=3))
register("method", "retrain-all")(partial(ScheduledRetraining, k=1))
