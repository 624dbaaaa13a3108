"""Base class for test-time adaptation of a network's normalization layers, from inputs alone.

As set up for the RDumb study (Press et al., "RDumb", NeurIPS 2023): batch norm always uses the statistics of the
present batch, also in `predict`; its running statistics are removed. The scales and shifts of batch, layer and group
norm are trained. Answers are those from before the update, and one forward pass serves both. Departs from the study's
code in that the network is in evaluation mode, so that dropout and stochastic depth are off, and in that layer and
group norm are adapted too: the code collects batch norm alone, which leaves nothing to adapt in a transformer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from driftline.device import to_numpy
from driftline.errors import RequirementError, UserError
from driftline.learners.base import Learner
from driftline.learners.settings import BelowOne, NonNegative, OptimizerName
from driftline.models.preprocessing import to_float_batch
from driftline.tasks import Classification, Task
from driftline.training.fit import optimizer_step
from driftline.training.normalization import (
    affine_parameters,
    mean_scale_per_block,
    norm_layers,
    use_batch_statistics,
    work_around_group_norm_bug,
)
from driftline.training.optimizers import new_optimizer
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, Network, Reveal, Samples

BatchSize = Annotated[int, Field(ge=2)]


@dataclass
class NormAdapter(Learner):
    """A learner that makes one gradient step per batch on norm scales and shifts, with a loss that needs no labels."""

    batch: BatchSize = 256  # maximum batch size; larger batches are split evenly
    lr: NonNegative = 2.5e-4  # learning rate
    momentum: BelowOne = 0.9  # momentum of the optimizer
    optimizer: OptimizerName = "sgd"  # name of the optimizer

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    requires = "network"
    min_batch: ClassVar[int] = 2  # one input has no batch statistics; networks without batch norm take it
    quick: ClassVar[Mapping[str, str]] = {"lr": "adaptation_lr"}
    transient = frozenset({"_initial_weights", "_min_inputs", "_weights"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._min_inputs = adapt_statistics(model, task, self._name)
        self._weights = self.adapted_parameters(norm_layers(model))
        if not self._weights:
            raise UserError(f"{self._name} trains norm scales and shifts, and this network has none")
        for weight in self._weights:
            weight.requires_grad_()
        self._initial_weights = [weight.detach().clone() for weight in self._weights]
        self.optim = new_optimizer(self.optimizer, self._weights, lr=self.lr, momentum=self.momentum)

    @property
    def smallest_batch(self) -> int:
        return self._min_inputs

    def adapted_parameters(self, layers: dict[str, nn.Module]) -> list[nn.Parameter]:
        """Return the weights to train: scales and shifts of these normalization layers."""
        return affine_parameters(layers.values())

    def predict(self, x: Inputs) -> Answers:
        with torch.no_grad():
            return self._decoded([self.outputs(part, k) for k, part in enumerate(self._batches(x))])

    def answer(self, x: Inputs) -> Answers:
        return self._decoded([self.adapt_batch(part) for part in self._batches(x)])

    def adapt(self, x: Inputs) -> None:
        self.answer(x)

    def outputs(self, x: Tensor, batch_offset: int) -> Tensor:
        """Return raw outputs for a batch that is `batch_offset` batches from now."""
        outputs: Tensor = self.model(x)
        return outputs

    def loss(self, outputs: Tensor) -> Tensor | None:
        """Return the loss of a batch; None to skip the update."""
        raise NotImplementedError

    def adapt_batch(self, x: Tensor) -> Tensor:
        """Return the raw outputs for a batch, and adapt to it."""
        outputs: Tensor = self.model(x)
        # Gradients are forgotten even if no step follows; the momentum must not move weights on by itself then.
        self.optim.zero_grad()
        if (loss := self.loss(outputs)) is not None:
            optimizer_step(self.optim, loss)
        return outputs.detach()

    def diagnostics(self) -> Mapping[str, float]:
        """Return the mean norm scale of each block, which grows as a network collapses, and the distance moved."""
        moved = [weight.detach() - first for weight, first in zip(self._weights, self._initial_weights, strict=True)]
        distance = torch.linalg.vector_norm(torch.cat([part.flatten() for part in moved]))
        return {**scale_diagnostics(self.model), "distance from the start": distance.item()}

    @property
    def _name(self) -> str:
        return type(self).__name__.lower()

    def _batches(self, x: Inputs) -> list[Tensor]:
        return split_batches(self.model, x, self.batch, self._min_inputs, self._name)

    def _decoded(self, outputs: list[Tensor]) -> Answers:
        return self._task.decode(to_numpy(torch.cat(outputs)))


def adapt_statistics(model: nn.Module, task: Task, method: str) -> int:
    """Make batch norm use the statistics of the present batch; return the smallest batch that the network takes."""
    freeze_but_normalization(model, task, method)
    return 2 if use_batch_statistics(model) else 1


def freeze_but_normalization(model: nn.Module, task: Task, method: str) -> None:
    """Freeze a network in evaluation mode; refuse one without normalization layers to adapt, and other tasks."""
    if not isinstance(task, Classification):
        raise RequirementError("a classification task", f"{method} needs a classification task")
    if not norm_layers(model):
        raise RequirementError(
            "normalization layers",
            f"{method} adapts batch, layer or group normalization, and this network has none: use one that has, such "
            "as conv-1, resnet20 or resnet50",
        )
    model.eval().requires_grad_(False)
    work_around_group_norm_bug(model)


def split_batches(model: nn.Module, x: Inputs, batch: int, min_inputs: int, method: str) -> list[Tensor]:
    """Split inputs evenly into batches of at most `batch`, none with fewer than `min_inputs`."""
    inputs = torch_model(model).encode(x)
    if len(inputs) < min_inputs:
        raise UserError(
            f"{method} needs at least 2 inputs per batch, because this network has batch normalization; got "
            f"{len(inputs)}. Increase the batch size (check the last, smaller batch too), or use a network with "
            "layer or group normalization"
        )
    n_parts = min(-(-len(inputs) // batch), len(inputs) // min_inputs)
    parts = torch.arange(len(inputs)).tensor_split(max(1, n_parts))
    return [to_float_batch(inputs[rows]) for rows in parts]


def scale_diagnostics(model: nn.Module) -> dict[str, float]:
    """Return the mean norm scale of each block."""
    return {f"scales of {block}": size for block, size in mean_scale_per_block(model).items()}


def entropy(outputs: Tensor) -> Tensor:
    """Return the entropy of each sample's probabilities, in nats.

    >>> entropy(torch.tensor([[1.0, 1.0]])).item() == torch.log(torch.tensor(2.0)).item()
    True
    """
    log_p = outputs.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)
