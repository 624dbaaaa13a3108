"""The diagonal of the Fisher information of a network."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.tasks import Classification, Task
from driftline.training.per_sample_gradients import sum_over_samples
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Targets

FisherLabels = Literal["empirical", "sampled", "predicted"]
"""Whose labels the Fisher information is about: the true ones, draws from the model, or its best guesses."""


def fisher(
    model: nn.Module,
    task: Task,
    x: Inputs,
    y: Targets,
    *,
    labels: FisherLabels,
    examples: int | None = None,
    batches: bool = False,
    seed: Seed,
) -> Tensor:
    """Return the diagonal of the Fisher information of the present weights, one entry per trainable weight.

    F_i = mean over examples of (d log p(label | x) / d weight_i)^2, in evaluation mode. The square is taken example
    by example: the square of a batch's mean gradient is another quantity, close to zero where a model has converged.
    The task's loss counts as -log p, so a squared error stands for a normal distribution of variance 1/2.
    `examples`: the number drawn without replacement; None takes them all. `labels`: see `FisherLabels`. `batches`: pass
    samples together where the network allows it, which takes a third of the time or less but rounds differently. Only
    EWC does: False keeps the results of the other methods the same to the bit.
    """
    if labels != "empirical" and not isinstance(task, Classification):
        raise UserError(f"Fisher information with {labels} labels needs classes to choose from: use 'empirical'")
    if examples is not None and examples < 1:
        raise UserError(f"Fisher information from {examples} examples: give at least 1, or none for all there are")
    adapter = torch_model(model)
    inputs, targets = adapter.encode(x), adapter.targets(task.targets(y))
    random = seed.torch()
    rows = torch.arange(len(targets))
    if examples is not None and examples < len(rows):
        rows = torch.randperm(len(rows), generator=random)[:examples]

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return task.loss(outputs, _labels(outputs.detach(), targets, labels, random)).sum()

    return sum_over_samples(model, inputs, targets, rows, loss, torch.square, batches=batches) / len(rows)


def _labels(logits: Tensor, targets: Tensor, labels: FisherLabels, random: torch.Generator) -> Tensor:
    if labels == "empirical":
        return targets
    if labels == "predicted":
        return logits.argmax(dim=1)
    # Row by row: the draws do not depend on the size of a batch.
    return torch.cat([torch.multinomial(row, 1, generator=random) for row in logits.softmax(dim=1)])
