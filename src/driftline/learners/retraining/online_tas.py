"""Retraining when online TAS says that the deployed model has fallen behind a newly trained one."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from driftline.learners.retraining.retrainer import PolicyLog, Retrainer
from driftline.learners.settings import Count, Inside
from driftline.learners.supervised.base import SupervisedLearner
from driftline.metrics.online_tas import online_tas, online_ttr
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.model import as_model
from driftline.types import Inputs, Network, Samples, Targets, take_rows


@register("method", "retrain-on-tas")
@dataclass
class RetrainOnTAS(SupervisedLearner):
    """Retraining when the online TAS of the deployed model (`metrics.online_tas`) falls below a threshold.

    Each time labels come, a share is held out, a challenger is trained on the rest of them, and both are evaluated on
    the held-out share. The challengers are counted as training.
    """

    window: Count | None = 3  # number of latest label deliveries to train on; None: all
    max_samples: Count | None = None  # maximum number of training samples, drawn uniformly from more; None: no limit
    threshold: float = 0.95  # retrain when the online TAS is lower
    holdout: Inside = 0.2  # share of the labels that is held out for evaluation

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.retrainer = Retrainer(self.window, self.max_samples, self.seed, deployed=upstream is not None)
        self.deployed_quality: list[float] = []
        self.challenger_quality: list[float] = []
        self.estimates: list[float] = []
        self.ratios: list[float] = []  # the online TTR behind each estimate

    def log(self) -> PolicyLog:
        """Return what the policy has done so far."""
        return replace(self.retrainer.log(), online_tas=tuple(self.estimates), online_ttr=tuple(self.ratios))

    def learn(self, x: Inputs, y: Targets) -> None:
        retrain = not self.retrainer.deployed or self.has_fallen_behind(x, y)
        self.retrainer.learn(self, x, y, retrain)
        if retrain:
            self.deployed_quality, self.challenger_quality = [], []

    def has_fallen_behind(self, x: Inputs, y: np.ndarray) -> bool:
        """Compare the deployed model with a challenger, and return whether its online TAS is too low."""
        if len(y) < 2:  # too few to train on some and evaluate on others
            return False
        order = self.seed.child("holdout", self.retrainer.n_batches).numpy().permutation(len(y))
        cut = min(max(round(self.holdout * len(y)), 1), len(y) - 1)
        aside, rest = np.sort(order[:cut]), np.sort(order[cut:])
        challenger = self._challenger()
        self.retrainer.fit_and_count(challenger, take_rows(x, rest), y[rest])
        self.deployed_quality.append(self.quality(self, take_rows(x, aside), y[aside]))
        self.challenger_quality.append(self.quality(challenger, take_rows(x, aside), y[aside]))
        self.estimates.append(float(online_tas(self.deployed_quality, self.challenger_quality)[-1]))
        self.ratios.append(float(online_ttr(self.deployed_quality, self.challenger_quality)[-1]))
        return self.estimates[-1] < self.threshold

    def quality(self, learner: SupervisedLearner, x: Inputs, y: np.ndarray) -> float:
        """Return the accuracy, or for numbers the mean of max(0, 1 - (error / scale)^2)."""
        return float(np.mean(self._task.correct(learner.predict(x).prediction, y)))

    def _challenger(self) -> SupervisedLearner:
        """Return a challenger: a learner of the same kind with its own copy of the model."""
        twin = copy.copy(self)
        twin.model = as_model(self.model).clone()
        return twin
