"""Training described in words before it is done: trials, the phases they compete in, and how a winner is picked.

A trial says everything that decides its outcome: the lessons, the start, the objective, the hyper-parameters. Two
trials that say the same have the same key, so methods that need the same fit share it, and an engine may compute
trials ahead, side by side and once. A phase is a set of trials of which validation accuracy keeps the best.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import product
from typing import Any, Literal

Objective = Literal["erm", "weighted", "irm", "dro", "joint", "fisher", "reference-fisher", "rgn", "snr"]
"""What a trial does. The last four do not train: they measure the weights they start from."""

Pull = Literal["none", "l2", "l1", "fisher", "fisher-all", "adjacent"]
"""What holds the weights: nothing; their start, by squares, by absolute values, or by squares times the Fisher
information of the last lesson or of all so far; or, in a network of several steps, the same weights a step earlier."""


@dataclass(frozen=True)
class Selection:
    """How hyper-parameters are chosen: which values are tried, how long a fit may take, how many fits compete."""

    lr: tuple[float, ...] = (1e-3, 1e-4)
    weight_decay: tuple[float, ...] = (1e-4, 1e-2)
    dropout: tuple[float, ...] = (0.0, 0.5)
    adjacent: tuple[float, ...] = (0.01, 0.1, 1.0)
    fisher: tuple[float, ...] = (0.1, 10.0)
    budget: Literal["same", "method", "paper"] = "same"
    """same: a phase has at most as many trials as lr x weight_decay x dropout; method: all phases of a method together
    have at most as many; paper: as many as there."""
    epochs: int = 100
    batch: int = 100
    patience: int = 5
    """A fit ends after more than so many epochs in a row without a rise in validation accuracy."""
    stopping: Literal["previous", "best"] = "previous"
    """What an epoch must exceed to count as a rise: the epoch before it, as in the paper's code, or the best so far."""
    holdout: float = 0.2
    """The share of each class of a lesson that chooses and does not train."""
    augment: bool = False
    """Whether training images are flipped, turned and pushed a little."""
    fisher_examples: int | None = 1000
    """How many examples the Fisher information is estimated from; None for all."""

    @property
    def size(self) -> int:
        """How many combinations of lr, weight_decay and dropout there are."""
        return len(self.lr) * len(self.weight_decay) * len(self.dropout)

    def points(self, *, extra: Sequence[float] = (), **axes: Sequence[float]) -> list[dict[str, Any]]:
        """The grid of a phase: every combination of lr, weight_decay and dropout, or of the axes given in their place.

        `extra` values of `strength` are one axis more. If that makes more points than lr x weight_decay x dropout has,
        under the same budget every other setting is still tried, and the values of `strength` are dealt out in turn.

        >>> [point["strength"] for point in Selection().points(extra=(0.01, 0.1, 1.0))]
        [0.01, 0.1, 1.0, 0.01, 0.1, 1.0, 0.01, 0.1]
        """
        usual = {"lr": self.lr, "weight_decay": self.weight_decay, "dropout": self.dropout}
        named = {**usual, **axes}
        grid = [dict(zip(named, point, strict=True)) for point in product(*named.values())]
        most, more = self.size, len(extra)
        if not extra:
            return grid
        rounds = more if self.budget == "paper" else min(more, max(1, most // len(grid)))
        dealt = [[(k + r) % more for r in range(rounds)] for k in range(len(grid))]
        return [{**point, "strength": extra[k]} for point, ks in zip(grid, dealt, strict=True) for k in sorted(ks)]


@dataclass(frozen=True)
class Growth:
    """How a network of several steps comes from the one before: see `models.joint`."""

    blocks: str
    """The kind of the blocks between stem and head."""
    ends: str
    """The kind of stem and head."""
    steps: int
    """How many steps the network has afterwards."""
    copy: bool = False
    """Whether new separate layers begin as copies of the step before."""
    frozen: bool = True
    """Whether only the last step is trained."""
    shared: tuple[str, ...] = ()
    """Layers that all steps have in common."""
    rank: int = 0
    start: str = "identity"
    """Where low-rank changes start: at none, or at random as in the reference code."""


@dataclass(frozen=True)
class Trial:
    """One fit."""

    train: tuple[int, ...]
    """The lessons it trains on."""
    valid: tuple[int, ...]
    """The lessons whose validation part scores it."""
    lr: float = 1e-3
    weight_decay: float = 0.0
    dropout: float = 0.0
    strength: float = 0.0
    start: Pick | None = None
    """Whose weights it starts from; None for the initial ones."""
    afresh: bool = False
    """Start from initial weights all the same: `start` is only what it is pulled to."""
    objective: Objective = "erm"
    pull: Pull = "none"
    layers: tuple[str, ...] | None = None
    """The layers that are trained; None for all."""
    top: int = 0
    """Train the first so many layers of the order that `start` has measured."""
    growth: Growth | None = None
    moving_statistics: bool = False
    """Whether batch-norm statistics of frozen layers move."""

    @cached_property
    def key(self) -> str:
        """A hash of what this trial says."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        said["start"] = self.start.key if self.start else None
        said["growth"] = asdict(self.growth) if self.growth else None
        return _hash(said)

    def said(self) -> dict[str, Any]:
        """Its settings in one flat row, for a table."""
        plain = {"trial": self.key, "start": self.start.key if self.start else "", "objective": self.objective}
        lists = {"train": self.train, "valid": self.valid, "layers": self.layers or ("all",)}
        numbers = {name: getattr(self, name) for name in ("lr", "weight_decay", "dropout", "strength", "top")}
        told = {name: ",".join(map(str, values)) for name, values in lists.items()}
        return {
            **plain,
            **told,
            **numbers,
            "pull": self.pull,
            "structure": self.growth.blocks if self.growth else "same",
        }

    @property
    def trains(self) -> bool:
        return self.objective not in ("fisher", "reference-fisher", "rgn", "snr")

    @property
    def name(self) -> str:
        what = self.objective if self.start is None else "tune" if self.trains else self.objective
        return f"{what} on {','.join(map(str, self.train))}"


@dataclass(frozen=True)
class Phase:
    """Trials that compete; the earlier one wins a tie."""

    trials: tuple[Trial, ...]
    keep: int = 1
    """How many of the best are of use to later phases."""

    @cached_property
    def key(self) -> str:
        return _hash([self.keep, *[trial.key for trial in self.trials]])

    @property
    def best(self) -> Pick:
        return Pick(self, 0)


@dataclass(frozen=True)
class Pick:
    """The trial that came out at this rank of a phase."""

    phase: Phase
    rank: int = 0

    @property
    def key(self) -> str:
        return f"{self.phase.key}/{self.rank}"


def needed(phase: Phase) -> Iterator[Trial]:
    """Every trial that a phase rests on, and its own, each once and after those it starts from."""
    seen: set[str] = set()

    def walk(phase: Phase) -> Iterator[Trial]:
        for trial in phase.trials:
            if trial.start and trial.start.phase.key not in seen:
                seen.add(trial.start.phase.key)
                yield from walk(trial.start.phase)
        yield from (trial for trial in phase.trials if trial.key not in seen)
        seen.update(trial.key for trial in phase.trials)

    yield from walk(phase)


def ranked(scores: Sequence[float]) -> list[int]:
    """Positions from the best score to the worst; the earlier one first among equals.

    >>> ranked([0.5, 0.75, 0.75])
    [1, 2, 0]
    """
    return sorted(range(len(scores)), key=lambda k: (-scores[k], k))


def _hash(said: Any) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
