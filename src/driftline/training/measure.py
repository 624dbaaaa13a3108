"""Measurements of a trained network that later training uses: Fisher information, and which layers to tune."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from driftline.models.inputs import as_input, as_tensor
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training import pulse
from driftline.training.attempt import Lesson
from driftline.training.fit import evaluating
from driftline.training.penalties import fisher, flat, gradient, trainable
from driftline.training.trials import Selection, Trial

TINY = 1e-8


def measured(
    trial: Trial,
    network: nn.Module,
    before: Mapping[str, Any],
    lesson: Lesson,
    task: Task,
    selection: Selection,
    seed: Seed,
) -> dict[str, Any]:
    """What the trial asks to know about the network on a lesson; `before` is the outcome whose weights it has."""
    if trial.objective in ("rgn", "snr"):
        scores = layer_scores(network, task, lesson, selection.batch, trial.objective)
        return {"order": sorted(scores, key=lambda name: -scores[name]), "layer_scores": scores}
    if trial.objective == "fisher":
        examples = selection.fisher_examples
        importance = fisher(
            network, task, lesson.train_x, lesson.train_y, labels="empirical", examples=examples, seed=seed
        )
    else:
        importance = batch_fisher(network, task, lesson, selection.batch)
    with torch.no_grad():
        anchor = flat(trainable(network))
    if trial.pull == "fisher-all" and "importance" in before:
        return accumulated(before["importance"], before["anchor"], importance, anchor)
    return {"importance": importance, "anchor": anchor}


def accumulated(importance: Tensor, anchor: Tensor, new: Tensor, weights: Tensor) -> dict[str, Tensor]:
    """One pull that equals, up to a constant, two: a (w - p)^2 + b (w - q)^2 = (a + b) (w - (a p + b q) / (a + b))^2.

    >>> accumulated(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([3.0]), torch.tensor([4.0]))
    {'importance': tensor([4.]), 'anchor': tensor([3.])}
    """
    total = importance + new
    mean = torch.where(total > 0, (importance * anchor + new * weights) / total.clamp_min(1e-38), weights)
    return {"importance": total, "anchor": mean}


def batch_fisher(network: nn.Module, task: Task, lesson: Lesson, batch: int) -> Tensor:
    """What the reference code of Seq-to-Final calls Fisher information: squares of batch-summed gradients, over n."""
    total = torch.zeros(sum(weight.numel() for weight in trainable(network)))
    for slope, n in _slopes(network, task, lesson, batch):
        total += (n * slope) ** 2
    return total / len(lesson.train_y)


def layer_scores(network: nn.Module, task: Task, lesson: Lesson, batch: int, kind: str) -> dict[str, float]:
    """How much each layer asks to be tuned: the mean over its weight tensors of a ratio over mini-batches.

    rgn: the mean norm of the gradient over the norm of the weights. snr: per entry, the square of the mean gradient
    over its variance. Lee et al., "Surgical fine-tuning", ICLR 2023, which measures per example; this measures per
    mini-batch, of which there are at least eight. (The Seq-to-Final code takes the variance along a tensor's first
    dimension instead.)
    """
    batch = max(1, min(batch, len(lesson.train_y) // 8))
    weights = trainable(network)
    norms, total, squares, batches = torch.zeros(len(weights)), torch.zeros(()), torch.zeros(()), 0
    sizes = [weight.numel() for weight in weights]
    for slope, _ in _slopes(network, task, lesson, batch):
        norms = norms + torch.stack([part.norm() for part in slope.split(sizes)])
        total, squares, batches = total + slope, squares + slope**2, batches + 1
    if kind == "rgn":
        ratios = norms / batches / torch.stack([weight.detach().norm().clamp_min(TINY) for weight in weights])
    else:
        mean = total / batches
        signal = mean**2 / (squares / batches - mean**2 + TINY)
        ratios = torch.stack([part.mean() for part in signal.split(sizes)])
    ratio = {id(weight): value for weight, value in zip(weights, ratios.tolist(), strict=True)}
    layers: Any = network.layers
    means = {}
    for name, layer in layers.items():
        of_layer = [ratio[id(weight)] for weight in layer.parameters() if id(weight) in ratio]
        means[name] = sum(of_layer) / len(of_layer)
    return means


def _slopes(network: nn.Module, task: Task, lesson: Lesson, batch: int) -> Iterator[tuple[Tensor, int]]:
    """The gradient of the mean loss of each mini-batch in turn, in evaluation mode."""
    inputs, targets = as_tensor(lesson.train_x, network), torch.as_tensor(task.targets(lesson.train_y))
    with evaluating(network), torch.enable_grad():
        for x, y in pulse.each(list(zip(inputs.split(batch), targets.split(batch), strict=True))):
            yield gradient(task.loss(network(as_input(x)), y).mean(), trainable(network)), len(y)
