"""Training and asking a network: plain loops over tensors in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from driftline.models.inputs import Standardise, as_input, as_tensor
from driftline.seeds import Seed

Update = Callable[[Tensor, Tensor], None]
"""One step of training on the inputs and targets of a mini-batch."""


def fit(model: nn.Module, x: Any, y: np.ndarray, update: Update, *, updates: int, batch: int, seed: Seed) -> None:
    """Exactly `updates` updates on mini-batches drawn with replacement, as Wild-Time trains.

    (Wild-Time's code makes one more update than it says; this does not.)
    """
    inputs, targets = as_tensor(x, model), torch.as_tensor(y)
    measure_inputs(model, inputs)
    rows = torch.randint(len(targets), (updates, batch), generator=seed.child("batches").torch())
    with training(model, seed.child("noise")):
        for chosen in rows:
            update(as_input(inputs[chosen]), targets[chosen])


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step down the gradient of a loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def outputs(model: nn.Module, x: Any, batch: int = 128) -> np.ndarray:
    """Raw outputs in evaluation mode; the network is left as it was."""
    inputs = as_tensor(x, model)
    with evaluating(model), torch.no_grad():
        parts = [model(as_input(inputs[i : i + batch])) for i in range(0, max(len(inputs), 1), batch)]
    return torch.cat(parts).numpy()


def measure_inputs(model: nn.Module, inputs: Tensor) -> None:
    """Let the network's standardising layers see the first data it is trained on."""
    for module in model.modules():
        if isinstance(module, Standardise) and not module.ready:
            module.measure(as_input(inputs))


@contextmanager
def training(model: nn.Module, seed: Seed) -> Iterator[None]:
    """Training mode, with dropout and other noise drawn from a seed of its own."""
    model.train()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed.value % 2**63)
            yield
    finally:
        model.eval()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; every layer then goes back to the mode it had."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
