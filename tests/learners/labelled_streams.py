"""Networks and labelled streams that tests of open-world methods share."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from driftline import loop
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.mac_counter import MacCounter
from driftline.types import Answers, Reveal, Samples, Step

FOUR = Classification(("a", "b", "c", "d"))


class Scaled(nn.Module):
    """Numbers times a weight each: a layer whose weights cost nothing."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.by = nn.Parameter(torch.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.by


def small(outputs: int = 4) -> nn.Sequential:
    """Two linear layers with a batch norm between, of five numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, outputs)).eval()


def unlabelled() -> nn.Sequential:
    """The same as pretraining leaves it that makes no use of the last layer."""
    model = small()
    nn.init.zeros_(model[3].weight)
    nn.init.zeros_(model[3].bias)
    return model


def some(n: int, classes: Any = (0, 1, 2, 3), seed: int = 0) -> Samples:
    """Classes that differ in their means."""
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n).astype(np.int64)
    return Samples((rng.normal(size=(n, 5)) + y[:, None]).astype(np.float32), y)


def ready(learner: Any, model: Any = None, upstream: Samples | None = None, task: Any = FOUR) -> Any:
    learner.seed = Seed(1)
    learner.prepare(small() if model is None else model, task, upstream)
    return learner


def metered(model: nn.Module) -> tuple[nn.Module, MacCounter]:
    meter = MacCounter()
    meter.attach(model)
    return model, meter


class Notes:
    """The answers to each step."""

    def __init__(self) -> None:
        self.answers: list[Answers] = []

    def add_answers(self, step: Step, answers: Answers) -> None:
        self.answers.append(answers)

    def add_probe(self, *args: Any) -> None: ...

    def add_diagnostics(self, *args: Any) -> None: ...


class NoProbes:
    def due(self, step: Step | None) -> list[Any]:
        return []


def streamed(learner: Any, samples: Samples, cuts: tuple[int, ...] = (), *, task: Any = FOUR, **rule: Any) -> Answers:
    """All answers to samples that come one by one, in steps that end at these places."""
    ends = [0, *cuts, len(samples)]
    steps = [Step(k, str(k), samples[a:b], one_by_one=True) for k, (a, b) in enumerate(pairwise(ends))]
    notes, reveal = Notes(), RevealPolicy(task, Reveal.LABELS, Seed(2), **rule)
    loop.run(steps, learner, reveal, NoProbes(), notes)  # type: ignore[arg-type]
    return Answers.concat(notes.answers)
