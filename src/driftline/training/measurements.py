"""Measurements of a fitted network that later fits use: Fisher information, and the order in which to tune layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from driftline.device import to_device
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.batches import iterations
from driftline.training.fisher import fisher
from driftline.training.modes import evaluating
from driftline.training.regularization import flatten, gradient, trainable_parameters
from driftline.training.step_data import StepData
from driftline.training.torch_model import torch_model
from driftline.types import State

TINY = 1e-8


class Measurement:
    """What a plan measures of a fitted network. A subclass is a frozen dataclass; its fields are part of the key."""

    name: ClassVar[str]

    def measure(self, network: nn.Module, task: Task, data: StepData, before: State, batch: int, seed: Seed) -> State:
        """Return what was measured on a step's training samples; `before` is the result of the fit."""
        raise NotImplementedError


@register("measurement", "fisher")
@dataclass(frozen=True)
class Fisher(Measurement):
    """The diagonal Fisher information and the weights it belongs to, for EWC's penalty."""

    examples: int | None = None
    """The number of examples; None for all."""
    accumulate: bool = False
    """Whether to add it to the measurements of earlier steps."""
    name: ClassVar[str] = "fisher"

    def measure(self, network: nn.Module, task: Task, data: StepData, before: State, batch: int, seed: Seed) -> State:
        importance = self.importance(network, task, data, batch, seed)
        with torch.no_grad():
            anchor = flatten(trainable_parameters(network))
        if self.accumulate and "importance" in before:
            return merge_penalties(to_device(before["importance"]), to_device(before["anchor"]), importance, anchor)
        return {"importance": importance, "anchor": anchor}

    def importance(self, network: nn.Module, task: Task, data: StepData, batch: int, seed: Seed) -> Tensor:
        """Return the diagonal of the Fisher information."""
        x, y = data.train_x, data.train_y
        return fisher(network, task, x, y, labels="empirical", examples=self.examples, seed=seed)


@register("measurement", "reference-fisher")
@dataclass(frozen=True)
class ReferenceFisher(Fisher):
    """What the reference code of Seq-to-Final uses in place of the Fisher information."""

    name: ClassVar[str] = "reference-fisher"

    def importance(self, network: nn.Module, task: Task, data: StepData, batch: int, seed: Seed) -> Tensor:
        return reference_fisher(network, task, data, batch)


@register("measurement", "rgn")
@dataclass(frozen=True)
class LayerOrder(Measurement):
    """The order in which surgical fine-tuning takes layers, by relative gradient norm (`layer_scores`)."""

    name: ClassVar[str] = "rgn"

    def measure(self, network: nn.Module, task: Task, data: StepData, before: State, batch: int, seed: Seed) -> State:
        scores = layer_scores(network, task, data, batch, self.name)
        return {"order": sorted(scores, key=lambda name: -scores[name]), "layer_scores": scores}


@register("measurement", "snr")
@dataclass(frozen=True)
class LayerOrderBySNR(LayerOrder):
    """The same by the signal-to-noise ratio of gradients."""

    name: ClassVar[str] = "snr"


def merge_penalties(importance: Tensor, anchor: Tensor, new: Tensor, weights: Tensor) -> dict[str, Tensor]:
    """Return one penalty that equals two up to a constant.

    a (w - p)^2 + b (w - q)^2 = (a + b) (w - (a p + b q) / (a + b))^2 + constant

    >>> merge_penalties(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([3.0]), torch.tensor([4.0]))
    {'importance': tensor([4.]), 'anchor': tensor([3.])}
    """
    total = importance + new
    mean = torch.where(total > 0, (importance * anchor + new * weights) / total.clamp_min(1e-38), weights)
    return {"importance": total, "anchor": mean}


def reference_fisher(network: nn.Module, task: Task, data: StepData, batch: int) -> Tensor:
    """Return Fisher information as in the reference code of Seq-to-Final: squares of batch-summed gradients, over n."""
    total = to_device(torch.zeros(sum(weight.numel() for weight in trainable_parameters(network))))
    for grad, n in _batch_gradients(network, task, data, batch):
        total += (n * grad) ** 2
    return total / len(data.train_y)


def layer_scores(network: nn.Module, task: Task, data: StepData, batch: int, kind: str) -> dict[str, float]:
    """Return a score per layer: the mean over its weight tensors of a ratio over mini-batches.

    rgn: the mean norm of the gradient over the norm of the weights. snr: per entry, the square of the mean gradient
    over its variance. Lee et al., "Surgical fine-tuning", ICLR 2023, which measures per example; this measures per
    mini-batch, of which there are at least eight. (The Seq-to-Final code takes the variance along a tensor's first
    dimension instead.)
    """
    batch = max(1, min(batch, len(data.train_y) // 8))
    weights = trainable_parameters(network)
    norms, total, squares, batches = to_device(torch.zeros(len(weights))), torch.zeros(()), torch.zeros(()), 0
    sizes = [weight.numel() for weight in weights]
    for grad, _ in _batch_gradients(network, task, data, batch):
        norms = norms + torch.stack([part.norm() for part in grad.split(sizes)])
        total, squares, batches = total + grad, squares + grad**2, batches + 1
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


def _batch_gradients(network: nn.Module, task: Task, data: StepData, batch: int) -> Iterator[tuple[Tensor, int]]:
    """Yield the gradient of the mean loss of each mini-batch, in evaluation mode."""
    inputs, targets = torch_model(network).encode(data.train_x), to_device(torch.as_tensor(task.targets(data.train_y)))
    with evaluating(network), torch.enable_grad():
        batches = torch.arange(len(targets)).split(batch)
        for rows in (batches[number] for number in iterations(len(batches))):
            loss = task.loss(network(to_float_batch(inputs[rows])), targets[rows]).mean()
            yield gradient(loss, trainable_parameters(network)), len(rows)
