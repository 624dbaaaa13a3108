"""Training by epochs: how long to go on, and which epoch's weights to keep."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import nn

from driftline.training.batches import iterations
from driftline.training.mac_counter import is_spent
from driftline.types import State

PERFECT = 1.0
"""The highest accuracy: no later epoch can exceed it, so none could be kept."""


@dataclass
class FitCurve:
    """The result of a fit with early stopping."""

    score: float
    weights: State
    epoch: int
    """The epoch of the selected weights; 0 is before any training."""
    curve: list[float]
    """Validation accuracy before training and after each epoch."""


def fit_with_early_stopping(
    network: nn.Module,
    train: Callable[[int], None],
    score: Callable[[], float],
    *,
    epochs: int,
    patience: int,
    stopping: Literal["previous", "best"] = "previous",
    report: Callable[[int, int], None] = lambda done, of: None,
) -> FitCurve:
    """Train epoch by epoch and keep the weights of the best one, the untrained ones included.

    Only a strictly higher score replaces the best. The fit ends after `epochs`, or when more than `patience` epochs in
    a row did not rise above the epoch before (or above the best so far: `stopping="best"`), or when the compute of the
    run is spent. It also ends at a score of 1, an accuracy that no later epoch exceeds: the weights kept are the same.
    """
    first = score()
    found = FitCurve(first, _weights(network), 0, [first])
    idle = 0
    for epoch in (number + 1 for number in iterations(epochs)):
        if found.score >= PERFECT:
            break
        to_beat = found.curve[-1] if stopping == "previous" else found.score
        train(epoch)
        reached = score()
        found.curve.append(reached)
        report(epoch, epochs)
        if reached > found.score:
            found.score, found.weights, found.epoch = reached, _weights(network), epoch
        idle = 0 if reached > to_beat else idle + 1
        if idle > patience or is_spent(network):
            break
    report(epochs, epochs)
    return found


def _weights(network: nn.Module) -> State:
    return copy.deepcopy(dict(network.state_dict()))
