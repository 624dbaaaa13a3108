"""The fits of a plan: training with early stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from driftline.device import to_device
from driftline.learners.fit_plan import FitSpec, SearchSpace
from driftline.models.block_networks.base import decayed_parameters
from driftline.models.preprocessing import to_float_batch
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.augmentations import random_flip_rotate_translate
from driftline.training.batches import count_batches, infinite_batches, iterations, shuffled_batches
from driftline.training.early_stopping import fit_with_early_stopping
from driftline.training.fit import fit_input_scaling, optimizer_step
from driftline.training.mac_counter import is_spent
from driftline.training.modes import training
from driftline.training.objectives import Group
from driftline.training.optimizers import new_optimizer
from driftline.training.regularization import trainable_parameters
from driftline.training.step_data import StepData
from driftline.training.torch_model import torch_model
from driftline.types import JsonObject, State, concat_rows

Report = Callable[[int, int], None]
Batches = Callable[[int], Iterator[list[Group]]]
"""From an epoch's number to its mini-batches, in groups."""


@dataclass(eq=False)
class FitRun:
    """One fit of a plan: trains a network as the fit specifies, from the weights it has.

    Batches and noise depend on the seed and the training steps alone, so fits that differ in a hyper-parameter see
    the same batches.
    """

    fit_spec: FitSpec
    network: nn.Module
    before: State
    """The result of the fit that the penalty's anchor comes from."""
    data: Mapping[int, StepData]
    task: Task
    selection: SearchSpace
    seed: Seed

    def __post_init__(self) -> None:
        fit_spec, network, data = self.fit_spec, self.network, self.data
        self.seed = self.seed.child("trial", *fit_spec.train)  # part of the random stream; never rename
        network.dropout = fit_spec.dropout  # type: ignore[assignment]  # networks without blocks do not look at it
        self.optimizer = optimizer(self.selection.optimizer, network, fit_spec.lr, fit_spec.weight_decay)
        penalized = fit_spec.penalty if fit_spec.penalty and fit_spec.penalty.weight else None
        self.penalty = penalized.bind(network, self.before) if penalized else lambda: torch.zeros(())
        self.augmented = random_flip_rotate_translate if self.selection.augment else lambda x: x
        self.inputs = {t: torch_model(network).encode(data[t].train_x) for t in fit_spec.train}
        self.targets = {t: to_device(torch.as_tensor(self.task.targets(data[t].train_y))) for t in fit_spec.train}
        self.valid_x = concat_rows([data[t].valid_x for t in fit_spec.valid])
        self.valid_y = np.concatenate([data[t].valid_y for t in fit_spec.valid])
        self.batches = self._pooled_batches() if fit_spec.objective.pools else self._batches_by_step()

    def run(self, report: Report = lambda done, of: None) -> JsonObject:
        """Train; return the score, the selected weights and the learning curve."""
        inputs = concat_rows([self.data[t].train_x for t in self.fit_spec.train])
        fit_input_scaling(self.network, torch_model(self.network).encode(inputs))
        best = fit_with_early_stopping(
            self.network,
            self.epoch,
            self.score,
            epochs=self.epochs,
            patience=self.selection.patience,
            stopping=self.selection.stopping,
            report=report,
        )
        return {"score": best.score, "weights": best.weights, "epoch": best.epoch, "curve": best.curve}

    @property
    def epochs(self) -> int:
        """The most epochs; the last of a number of updates may be shorter than the others."""
        updates = self.selection.updates
        return self.selection.epochs if updates is None else math.ceil(updates / self.updates_per_epoch)

    def updates_in(self, epoch: int) -> int:
        """Return the number of updates in an epoch, from 1."""
        if self.selection.updates is None:
            return self.updates_per_epoch
        return min(self.updates_per_epoch, self.selection.updates - (epoch - 1) * self.updates_per_epoch)

    def epoch(self, number: int) -> None:
        """Train for one epoch, or as long as compute allows."""
        with training(self.network, self.seed.child("noise", number)):
            for groups in self.batches(number):
                if is_spent(self.network):
                    break
                optimizer_step(self.optimizer, self.fit_spec.objective.loss(self.task, groups) + self.penalty())

    def _pooled_batches(self) -> Batches:
        """Return epochs of mini-batches drawn from all steps together."""
        x, y = concat_rows(list(self.inputs.values())), torch.cat(list(self.targets.values()))
        weights = self.fit_spec.objective.sample_weights([len(part) for part in self.targets.values()])
        batch = self.selection.batch
        self.updates_per_epoch = count_batches(len(y), batch)

        def epoch(number: int) -> Iterator[list[Group]]:
            for rows in shuffled_batches(len(y), batch, self.seed.child("epoch", number), self.updates_in(number)):
                outputs = self.network(self.augmented(to_float_batch(x[rows])))
                yield [Group(outputs, y[rows], None if weights is None else weights[rows])]

        return epoch

    def _batches_by_step(self) -> Batches:
        """Return epochs of mini-batches with one group per step, each passed alone: batch norm must not mix them."""
        sizes, batch = {t: len(y) for t, y in self.targets.items()}, self.selection.batch
        streams = {t: infinite_batches(n, batch, self.seed.child("lesson", t)) for t, n in sizes.items()}
        self.updates_per_epoch = max(count_batches(n, batch) for n in sizes.values())

        def epoch(number: int) -> Iterator[list[Group]]:
            for _ in iterations(self.updates_in(number)):
                yield [self._group(t, next(rows), step) for step, (t, rows) in enumerate(streams.items())]

        return epoch

    def _group(self, t: int, rows: Tensor, step: int) -> Group:
        x = self.augmented(to_float_batch(self.inputs[t][rows]))
        group = Group(self.fit_spec.objective.forward(self.network, x, step), self.targets[t][rows])
        group.risk(self.task)  # now: the order in which a graph is made decides the last digits of gradients
        return group

    def score(self) -> float:
        """Return the accuracy on validation samples."""
        answers = self.task.decode(torch_model(self.network).predict(self.valid_x, batch=500))
        return float(self.task.correct(answers.prediction, self.valid_y).mean())


def optimizer(name: str, network: nn.Module, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    """Return an optimizer of the weights that are to move, with `weight_decay` times their squares added to the loss.

    Adam's own weight decay adds decay * w to the gradient, and the derivative of w^2 is 2 w: hence the factor 2. (AdamW
    shrinks weights by itself.) Batch norm is not decayed.
    """
    shrinking = {id(weight) for weight in decayed_parameters(network)}
    groups: list[JsonObject] = [
        {"params": [w for w in trainable_parameters(network) if id(w) in shrinking], "weight_decay": 2 * weight_decay},
        {"params": [w for w in trainable_parameters(network) if id(w) not in shrinking]},
    ]
    return new_optimizer(name, [group for group in groups if group["params"]], lr=lr)
