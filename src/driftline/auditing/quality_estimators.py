"""Quality before labels come, estimated from a model's inputs and answers.

Both estimators are fitted on rows whose labels are known and that the model was not trained on, and assume that the
relation between inputs and target stays. They follow a change of the inputs; they cannot see a change of the relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from driftline.auditing.metric import NUMBER_METRICS, Metric
from driftline.auditing.recalibration import Recalibration, fit_recalibration
from driftline.models.tabular import EncodedEstimator
from driftline.seeds import Seed
from driftline.types import Answers

LABEL_DRAWS = 20  # of labels from the probabilities, for metrics that have no expectation in closed form
PREDICTION = "driftline prediction"  # name of an additional input


class QualityEstimator(Protocol):
    """An estimator of a metric on rows without labels."""

    @property
    def metric(self) -> Metric:
        """What is estimated."""
        ...

    def estimate(self, inputs: pd.DataFrame, answers: Answers) -> float:
        """Return the metric that these answers are expected to have."""
        ...


@dataclass(frozen=True, eq=False)
class ConfidenceEstimator:
    """For classes: the recalibrated probabilities say how often an answer is right."""

    metric: Metric
    recalibration: Recalibration
    seed: Seed

    def estimate(self, inputs: pd.DataFrame, answers: Answers) -> float:
        """Return the expected metric if labels were drawn from the recalibrated probabilities."""
        assert answers.scores is not None
        probability = self.recalibration.apply(answers.scores)
        if self.metric.name == "accuracy":
            return float(probability[np.arange(len(answers)), answers.prediction].mean())
        below = probability.cumsum(axis=1)[:, :-1]
        random, values = self.seed.numpy(), []
        for _ in range(LABEL_DRAWS):
            y = (random.random(len(answers))[:, None] > below).sum(axis=1)
            values.append(self.metric.rows(y, answers.prediction, answers.scores).mean())
        return float(np.mean(values))


@dataclass(frozen=True, eq=False)
class LossEstimator:
    """For numbers: a regression of the error on inputs and prediction."""

    metric: Metric
    """The mean absolute error, or RMSE."""
    regression: Any

    def estimate(self, inputs: pd.DataFrame, answers: Answers) -> float:
        """Return the mean of the predicted errors."""
        mean = float(np.maximum(self.regression.predict(_with_prediction(inputs, answers)), 0).mean())
        return float(np.sqrt(mean)) if self.metric.name == "rmse" else mean


def estimable(metric: Metric, is_classification: bool) -> Metric:
    """Return the metric that is estimated: the given one, or for other metrics of numbers the mean absolute error."""
    return metric if is_classification or metric.name in ("mae", "rmse") else NUMBER_METRICS["mae"]


def fit_estimator(
    metric: Metric, inputs: pd.DataFrame, answers: Answers, y: np.ndarray, seed: Seed
) -> QualityEstimator:
    """Fit an estimator on labeled rows: by probabilities if the answers have them, else by errors of numbers."""
    if answers.scores is not None:
        return ConfidenceEstimator(metric, fit_recalibration(answers.scores, y), seed)
    from sklearn.ensemble import HistGradientBoostingRegressor

    error = np.abs(answers.prediction - y)
    target = error**2 if metric.name == "rmse" else error
    trees = HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=30, l2_regularization=1.0, early_stopping=False, random_state=0
    )
    return LossEstimator(metric, EncodedEstimator(trees).fit(_with_prediction(inputs, answers), target))


def _with_prediction(inputs: pd.DataFrame, answers: Answers) -> pd.DataFrame:
    return inputs.assign(**{PREDICTION: np.asarray(answers.prediction, float)})
