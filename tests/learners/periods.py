"""Four periods of samples, and learners trained on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from driftline.learners.base import Learner
from driftline.learners.domain_generalization.windows import GroupedBatch, draw_grouped, sliding_windows
from driftline.seeds import Seed
from driftline.testing import digest
from driftline.testing.fixtures import SHAPE, TASK, samples, small_network
from driftline.types import Samples

PERIODS = [samples(k) for k in range(4)]


def network() -> Any:
    return small_network(SHAPE, 3, Seed(5))


def trained(learner: Learner, periods: Sequence[Samples] = PERIODS, model: Any = None) -> Any:
    learner.seed = Seed(1)
    learner.prepare(network() if model is None else model, TASK)
    for period in periods:
        learner.learn(period.x, period.y)
    return learner


def weights(model: Any) -> str:
    return digest(dict(model.state_dict()))


def fit_by_hand(
    optimizer_of: Callable[[Any], torch.optim.Optimizer],
    objective: Callable[[Any, GroupedBatch], Tensor],
    periods: Sequence[Samples] = PERIODS,
) -> Any:
    """One fit on all periods, written out: 4 updates, windows of two periods, 10 examples from 2 of them."""
    model, seed = network(), Seed(1).child("lesson", 0)
    x = torch.cat([torch.from_numpy(period.x) for period in periods]).permute(0, 3, 1, 2).float() / 255
    y = torch.cat([torch.from_numpy(period.y) for period in periods])
    windows = sliding_windows([18] * len(periods), 2)
    optimizer = optimizer_of(model.parameters())
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(seed.child("noise").value % 2**63)
        for chosen, rows in zip(*draw_grouped(windows, [5, 5], 4, seed.child("batches").torch()), strict=True):
            optimizer.zero_grad()
            objective(model, GroupedBatch(x[rows], y[rows], chosen, [5, 5])).backward()
            optimizer.step()
    return model
