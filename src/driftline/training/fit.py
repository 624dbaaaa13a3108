"""Training a network: plain loops over tensors in memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from driftline.models.preprocessing import Standardize, to_float_batch
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.augmentations import augmented
from driftline.training.batches import iterations, shuffled_batches
from driftline.training.loss_scaling import scaled, unscale_gradients
from driftline.training.mac_counter import is_spent
from driftline.training.modes import training
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Targets

Update = Callable[[Tensor, Tensor], None]
"""One step of training on the inputs and targets of a mini-batch."""

PRECONVERT_MAX_VALUES = 1 << 24
"""Inputs of up to this many numbers, 64 MiB as floats, are converted once instead of batch by batch."""


def fit(
    model: nn.Module,
    x: Inputs,
    y: np.ndarray,
    update: Update,
    *,
    updates: int,
    batch: int,
    seed: Seed,
    augment: str = "none",
) -> None:
    """Make `updates` updates on mini-batches drawn with replacement, as Wild-Time trains, or as many as compute allows.

    (Wild-Time's code makes one more update than its setting; this does not.) `augment`: see `augmentations`.
    """
    inputs, targets = training_tensors(model, x, y)
    if augment != "none":
        inputs = augmented(inputs, augment, seed)
    elif len(inputs) <= updates * batch:
        inputs = converted_once(inputs)
    rows = torch.randint(len(targets), (updates, batch), generator=seed.child("batches").torch())
    with training(model, seed.child("noise")):
        for number in iterations(updates):
            if is_spent(model):
                break
            chosen = rows[number]
            update(to_float_batch(inputs[chosen]), targets[chosen])


def train_epochs(
    model: nn.Module,
    task: Task,
    x: Inputs,
    y: np.ndarray,
    update: Update,
    *,
    epochs: int,
    batch: int,
    seed: Seed,
    max_updates: int,
    augment: str = "none",
) -> None:
    """Train for `epochs` epochs, each in a new random order.

    Stop after `max_updates` updates if that is not 0, or when the compute of the run is spent. The last batch may be
    smaller. A single sample left over joins the batch before it, because batch norm needs two.
    If a task accepts several answers, each epoch trains on one of them at random.
    """
    inputs, targets = training_tensors(model, x, task.targets(y))
    inputs = augmented(inputs, augment, seed) if augment != "none" else converted_once(inputs)
    made = 0
    with training(model, seed.child("noise")):
        for epoch in iterations(epochs):
            if hasattr(task, "sample_answers"):
                targets = torch_model(model).targets(task.sample_answers(y, seed.child("answers", epoch).numpy()))
            for rows in shuffled_batches(len(inputs), batch, seed.child("order", epoch)):
                if (max_updates and made == max_updates) or is_spent(model):
                    return
                update(to_float_batch(inputs[rows]), targets[rows])
                made += 1


def training_tensors(model: nn.Module, x: Inputs, y: Targets) -> tuple[Tensor, Tensor]:
    """Return inputs and targets to train on; a network without vocabulary, mean and deviation takes these from them."""
    adapter = torch_model(model)
    adapter.fit_vocabulary(x, y)
    inputs = adapter.encode(x)
    fit_input_scaling(model, inputs)
    return inputs, adapter.targets(y)


def converted_once(inputs: Tensor) -> Tensor:
    """Return inputs as floats, so that a sample is not converted with each batch; large inputs stay as they are."""
    return to_float_batch(inputs) if math.prod(inputs.shape) <= PRECONVERT_MAX_VALUES else inputs


def optimizer_step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Take one optimizer step on a loss."""
    optimizer.zero_grad()
    scaled(loss).backward()
    if unscale_gradients(optimizer):
        optimizer.step()


def descend_on(
    optimizer: torch.optim.Optimizer, model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor
) -> None:
    """Take one step on a mini-batch, in parts if the model has a micro-batch."""
    if most := torch_model(model).micro_batch:
        accumulated_step(optimizer, loss, x, y, most)
    else:
        optimizer_step(optimizer, loss(x, y))


def accumulated_step(
    optimizer: torch.optim.Optimizer, loss: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, micro_batch: int
) -> None:
    """Take one step on the mean loss of a mini-batch, with at most `micro_batch` samples in memory at a time."""
    optimizer.zero_grad()
    for rows in torch.arange(len(y)).split(micro_batch):
        scaled(loss(x[rows], y[rows]) * (len(rows) / len(y))).backward()
    if unscale_gradients(optimizer):
        optimizer.step()


def fit_input_scaling(model: nn.Module, inputs: Tensor) -> None:
    """Fit the network's standardizing layers to the first data it is trained on."""
    for module in model.modules():
        if isinstance(module, Standardize) and not module.fitted:
            module.fit(inputs)
