"""A model of one weight, so small that what a method makes of it can be computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing import digest
from driftline.types import Samples

TWO = Classification(("a", "b"))


class Unit(nn.Module):
    """A logistic unit: P(class 1) = sigmoid(w x)."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(weights))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([torch.zeros(len(x)), x @ self.w], dim=1)


def prepared(learner: Any, model: Any, upstream: Samples | None = None, task: Any = TWO) -> Any:
    learner.seed = Seed(1)
    learner.prepare(model, task, upstream)
    return learner


def column(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def weights(learner: Any) -> str:
    return digest(dict(learner.model.state_dict()))


def slopes(w: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-w * x)) - y) * x
