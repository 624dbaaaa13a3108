"""What `predict` must not change in a user's method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.predict_check import check_purity_once
from driftline.types import Answers, Inputs


@dataclass
class Changing(Learner):
    """Does something to its network, which no checkpoint holds, whenever it predicts."""

    change: Callable[[nn.Module], object]

    transient = frozenset({"network", "change"})

    def __post_init__(self) -> None:
        self.network = nn.Linear(2, 2).eval()

    def predict(self, x: Inputs) -> Answers:
        self.change(self.network)
        return Answers(np.zeros(len(x), int))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda network: nn.init.zeros_(network.weight), "the weights of network"),
        (lambda network: network.train(), "the train or eval mode of network"),
        (lambda network: network.requires_grad_(False), "the train or eval mode of network"),
    ],
)
def test_a_predict_that_changes_a_network_is_refused(change: Callable[[nn.Module], object], part: str) -> None:
    with pytest.raises(UserError, match=f"^Changing.predict changed {part}: predict must change nothing"):
        check_purity_once(Changing(change))(np.zeros((3, 2)))


def test_a_predict_that_only_uses_its_network_passes() -> None:
    predict = check_purity_once(Changing(lambda network: network(torch.zeros(1, 2))))
    assert predict(np.zeros((3, 2))).prediction.tolist() == [0, 0, 0]
