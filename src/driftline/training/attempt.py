"""Carrying out a trial: the fit, or the measurement, that it describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from driftline.models.blocks import decayed
from driftline.models.inputs import as_input, as_tensor
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training import pulse
from driftline.training.augment import jiggled
from driftline.training.epochs import climb, endless, shuffled
from driftline.training.fit import descend, measure_inputs, outputs, training
from driftline.training.objectives import invariance_penalty, slopes
from driftline.training.penalties import flat, pull, trainable
from driftline.training.trials import Selection, Trial
from driftline.types import join, take

Report = Callable[[int, int], None]
LAST_STEP_COUNTS = 3.0  # how much more the joint objective weighs the final step, as in the paper


@dataclass(frozen=True, eq=False)
class Lesson:
    """What one step showed: a part to train on and a part to choose by."""

    train_x: Any
    train_y: np.ndarray
    valid_x: Any
    valid_y: np.ndarray

    @staticmethod
    def of(x: Any, y: np.ndarray, holdout: float) -> Lesson:
        """Of each class the first rows train, at least one, and the last `holdout` share is for choosing."""
        trains = np.zeros(len(y), bool)
        for label in np.unique(y):
            rows = np.flatnonzero(y == label)
            trains[rows[: max(1, int(np.floor((1 - holdout) * len(rows) + 1e-9)))]] = True
        train, valid = np.flatnonzero(trains), np.flatnonzero(~trains)
        valid = valid if len(valid) else train  # too few to set any aside
        return Lesson(take(x, train), y[train], take(x, valid), y[valid])


def attempt(
    trial: Trial,
    network: nn.Module,
    anchor: Mapping[str, Any],
    lessons: Mapping[int, Lesson],
    task: Task,
    selection: Selection,
    seed: Seed,
    report: Report = lambda done, of: None,
) -> dict[str, Any]:
    """Train a network as the trial says, from the weights it has; its score, the weights kept, and how it went.

    `anchor`: the outcome that the weights may be pulled to. Batches and noise depend on the seed and the lessons alone,
    so that trials which differ in a setting meet the same batches.
    """
    fit = _Fit(trial, network, anchor, lessons, task, selection, seed.child("trial", *trial.train))
    measure_inputs(network, as_tensor(join([lessons[t].train_x for t in trial.train]), network))
    found = climb(network, fit.epoch, fit.score, selection, report)
    return {"score": found.score, "weights": found.weights, "epoch": found.epoch, "curve": found.curve}


class _Fit:
    def __init__(
        self,
        trial: Trial,
        network: nn.Module,
        anchor: Mapping[str, Any],
        lessons: Mapping[int, Lesson],
        task: Task,
        selection: Selection,
        seed: Seed,
    ) -> None:
        self.trial, self.network, self.task, self.seed = trial, network, task, seed
        network.dropout = trial.dropout  # type: ignore[assignment]  # networks without blocks do not look at it
        self.optimizer = optimizer(network, trial.lr, trial.weight_decay)
        self.held = Held(trial, network, anchor)
        self.batch = selection.batch
        self.augmented = jiggled if selection.augment else _as_it_is
        self.inputs = {t: as_tensor(lessons[t].train_x, network) for t in trial.train}
        self.targets = {t: torch.as_tensor(task.targets(lessons[t].train_y)) for t in trial.train}
        self.valid_x = join([lessons[t].valid_x for t in trial.valid])
        self.valid_y = np.concatenate([lessons[t].valid_y for t in trial.valid])
        if self.pools:
            self.pool_x, self.pool_y = torch.cat(list(self.inputs.values())), torch.cat(list(self.targets.values()))
            self.weight = recency([len(y) for y in self.targets.values()]) if trial.objective == "weighted" else None
        else:
            rows = {t: len(y) for t, y in self.targets.items()}
            self.streams = {t: endless(n, self.batch, seed.child("lesson", t)) for t, n in rows.items()}
            self.updates = max(len(shuffled(n, self.batch, seed)) for n in rows.values())

    @property
    def pools(self) -> bool:
        """Whether a batch is drawn from all lessons together; otherwise there is one batch per lesson."""
        return self.trial.objective in ("erm", "weighted")

    def epoch(self, number: int) -> None:
        with training(self.network, self.seed.child("noise", number)):
            if self.pools:
                for rows in pulse.each(shuffled(len(self.pool_y), self.batch, self.seed.child("epoch", number))):
                    descend(self.optimizer, self.pooled_loss(rows) + self.held.penalty())
            else:
                for _ in pulse.each(range(self.updates)):
                    descend(self.optimizer, self.loss_by_lesson() + self.held.penalty())

    def pooled_loss(self, rows: Tensor) -> Tensor:
        losses = self.task.loss(self.network(self.augmented(as_input(self.pool_x[rows]))), self.pool_y[rows])
        return losses.mean() if self.weight is None else (self.weight[rows] * losses).mean()

    def loss_by_lesson(self) -> Tensor:
        """One batch per lesson, each in a pass of its own: batch norm must not mix lessons."""
        joint = self.trial.objective == "joint"
        risks, penalties = [], []
        for step, (t, batches) in enumerate(self.streams.items()):
            rows = next(batches)
            x, y = self.augmented(as_input(self.inputs[t][rows])), self.targets[t][rows]
            out = self.network(x, step=step) if joint else self.network(x)
            risks.append(self.task.loss(out, y).mean())
            if self.trial.objective == "irm":
                penalties.append(invariance_penalty(slopes(out, y, self.task.loss)))
        if self.trial.objective == "dro":
            return max(risks, key=lambda risk: risk.item())  # not of a stack, which would go back through all lessons
        risk = torch.stack(risks)
        if self.trial.objective == "irm":
            return risk.mean() + self.trial.strength * torch.stack(penalties).mean()
        risk = torch.cat([risk[:-1], LAST_STEP_COUNTS * risk[-1:]])
        return risk.mean()

    def score(self) -> float:
        answers = self.task.decode(outputs(self.network, self.valid_x, batch=500))
        return float(self.task.correct(answers.prediction, self.valid_y).mean())


def _as_it_is(x: Tensor) -> Tensor:
    return x


def optimizer(network: nn.Module, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    """Adam on the weights that are to move, with `weight_decay` times their squares added to the loss.

    Adam's own weight decay adds decay * w to the gradient, and the slope of w^2 is 2 w: hence twice the number.
    Batch norm is not decayed.
    """
    shrinking = {id(weight) for weight in decayed(network)}
    groups: list[dict[str, Any]] = [
        {"params": [w for w in trainable(network) if id(w) in shrinking], "weight_decay": 2 * weight_decay},
        {"params": [w for w in trainable(network) if id(w) not in shrinking]},
    ]
    return torch.optim.Adam([group for group in groups if group["params"]], lr=lr)


def recency(sizes: list[int]) -> Tensor:
    """A weight per sample of several lessons, 1 / (age + 1), scaled to a mean of 1.

    >>> recency([1, 3]).tolist()  # 1/2 for the older one, 1 for the others
    [0.5714285969734192, 1.1428571939468384, 1.1428571939468384, 1.1428571939468384]
    """
    ages = range(len(sizes) - 1, -1, -1)
    weights = torch.cat([torch.full((n,), 1 / (age + 1)) for n, age in zip(sizes, ages, strict=True)])
    return weights / weights.mean()


class Held:
    """What holds the weights back during a fit."""

    def __init__(self, trial: Trial, network: nn.Module, anchor: Mapping[str, Any]) -> None:
        self.kind, self.strength, self.network = trial.pull, trial.strength, network
        if self.kind in ("l2", "l1"):
            self.weights = [weight for weight in decayed(network) if weight.requires_grad]
            names = {id(weight): name for name, weight in network.named_parameters()}
            self.anchor = flat([anchor["held_to"][names[id(weight)]] for weight in self.weights])
        elif self.kind in ("fisher", "fisher-all"):
            self.weights, self.anchor = list(network.parameters()), anchor["anchor"]  # frozen ones add a constant
            self.importance = anchor["importance"]

    def penalty(self) -> Tensor:
        """strength times: sum (w - anchor)^2, sum |w - anchor|, 1/2 sum F (w - anchor)^2, or sum (w_t - w_{t-1})^2."""
        if self.kind == "none" or not self.strength:
            return torch.zeros(())
        if self.kind == "adjacent":
            pairs = [pair for step in range(1, self.network.steps) for pair in self.network.adjacent(step)]  # type: ignore[operator, arg-type]
            moving = [(new, old) for new, old in pairs if new.requires_grad or old.requires_grad]
            if not moving:
                return torch.zeros(())
            return self.strength * pull(flat(new for new, _ in moving), flat(old for _, old in moving), 1.0)
        weights = flat(self.weights)
        if self.kind == "l1":
            return self.strength * (weights - self.anchor).abs().sum()
        if self.kind == "l2":
            return self.strength * pull(weights, self.anchor, 1.0)
        return self.strength / 2 * pull(weights, self.anchor, self.importance)
