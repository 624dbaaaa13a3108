"""Plans of fits: fits, search phases, and how the best fit of a phase is picked.

A fit names everything that decides its outcome: the steps, the initial weights, the objective, the hyper-parameters.
Equal fits have the same key, so methods that need the same fit share it, and an engine may compute fits ahead,
in parallel and once. A phase is a set of fits; the best by validation accuracy go on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Literal

from driftline.learners.settings import OptimizerName
from driftline.types import JsonObject, Settings

if TYPE_CHECKING:
    from driftline.training.measurements import Measurement
    from driftline.training.objectives import Objective
    from driftline.training.regularization import Penalty


@dataclass(frozen=True)
class SearchSpace:
    """The search space: values to try, the length of a fit, and the number of fits that compete."""

    lr: tuple[float, ...] = (1e-3, 1e-4)
    weight_decay: tuple[float, ...] = (1e-4, 1e-2)
    dropout: tuple[float, ...] = (0.0, 0.5)
    adjacent: tuple[float, ...] = (0.01, 0.1, 1.0)
    fisher: tuple[float, ...] = (0.1, 10.0)
    budget: Literal["same", "method", "paper"] = "same"
    """same: a phase has at most as many fits as lr x weight_decay x dropout; method: all phases of a method together
    have at most as many; paper: as many as there."""
    optimizer: OptimizerName = "adam"
    epochs: int = 100
    updates: int | None = None
    """The number of updates of a fit, in place of `epochs`; None: `epochs` counts."""
    batch: int = 100
    patience: int = 5
    """A fit ends after more than this many epochs in a row without a rise in validation accuracy."""
    stopping: Literal["previous", "best"] = "previous"
    """What an epoch must exceed to count as a rise: the epoch before it, as in the paper's code, or the best so far."""
    augment: bool = False
    """Whether training images are randomly flipped, rotated and translated."""
    fisher_examples: int | None = 1000
    """The number of examples for the Fisher information; None for all."""

    @classmethod
    def single(cls, budget: Settings) -> SearchSpace:
        """Return a space of one point, whose fits have the length of a training round of a benchmark.

        >>> space = SearchSpace.single({"updates": 300, "batch": 32})
        >>> space.size, space.updates, space.batch
        (1, 300, 32)
        """
        return cls(lr=(1e-3,), weight_decay=(0.0,), dropout=(0.0,), **budget)

    @property
    def size(self) -> int:
        """The number of combinations of lr, weight_decay and dropout."""
        return len(self.lr) * len(self.weight_decay) * len(self.dropout)

    def points(self, *, extra: Sequence[float] = (), **axes: Sequence[float]) -> list[JsonObject]:
        """Return the grid of a phase: every combination of lr, weight_decay and dropout, or of the axes given instead.

        `extra` values of `strength` are one axis more. If that makes more points than lr x weight_decay x dropout has,
        under the same budget every other setting is still tried, and the values of `strength` alternate.

        >>> [point["strength"] for point in SearchSpace().points(extra=(0.01, 0.1, 1.0))]
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
class Expansion:
    """How a network gets layers for further steps: see `models.block_networks.joint`."""

    blocks: str
    """The kind of the blocks between stem and head."""
    ends: str
    """The kind of stem and head."""
    steps: int
    """The number of steps of the resulting network."""
    copy: bool = False
    """Whether new separate layers begin as copies of the step before."""
    frozen: bool = True
    """Whether only the last step is trained."""
    shared: tuple[str, ...] = ()
    """Layers that all steps share."""
    rank: int = 0
    start: str = "identity"
    """The initial low-rank factors: none, or random as in the reference code."""


def _erm() -> Objective:
    from driftline.training.objectives import ERM

    return ERM()


@dataclass(frozen=True)
class FitSpec:
    """One fit, or one measurement of a fitted network."""

    train: tuple[int, ...]
    """The steps it trains on."""
    valid: tuple[int, ...]
    """The steps whose validation samples score it."""
    lr: float = 1e-3
    weight_decay: float = 0.0
    dropout: float = 0.0
    start: Winner | None = None
    """The fit whose weights it starts from; None for the initial weights."""
    from_initial: bool = False
    """Start from the initial weights even so: `start` is only the penalty's anchor."""
    objective: Objective = field(default_factory=_erm)
    penalty: Penalty | None = None
    measurement: Measurement | None = None
    """Measure the weights of `start` instead of training."""
    layers: tuple[str, ...] | None = None
    """The layers that are trained; None for all."""
    top: int = 0
    """Train this many layers, the first of the order that `start` measured."""
    growth: Expansion | None = None
    moving_statistics: bool = False
    """Whether batch-norm statistics of frozen layers move."""

    @cached_property
    def key(self) -> str:
        """A hash of all fields."""
        content = {part.name: _plain(getattr(self, part.name)) for part in fields(self) if part.name != "start"}
        return _hash({**content, "start": self.start.key if self.start else None})

    def as_row(self) -> JsonObject:
        """Return its settings in one flat row, for a table."""
        lists = {"train": self.train, "valid": self.valid, "layers": self.layers or ("all",)}
        weight = self.penalty.weight if self.penalty else self.objective.weight
        return {
            "trial": self.key,
            "start": self.start.key if self.start else "",
            "objective": self.objective.name,
            **{name: ",".join(map(str, values)) for name, values in lists.items()},
            **{name: getattr(self, name) for name in ("lr", "weight_decay", "dropout")},
            "strength": weight,
            "top": self.top,
            "pull": self.penalty.name if self.penalty else "none",
            "structure": self.growth.blocks if self.growth else "same",
        }

    def cost_key(self) -> JsonObject:
        """Return what decides its cost, besides the number of samples."""
        return {
            "objective": (self.measurement or self.objective).name,
            "penalty": self.penalty.name if self.penalty else None,
            **{name: getattr(self, name) for name in ("layers", "top", "moving_statistics", "from_initial")},
            "growth": _plain(self.growth),
            "starts": self.start is not None,
        }

    @property
    def trains(self) -> bool:
        return self.measurement is None

    @property
    def name(self) -> str:
        what = self.measurement.name if self.measurement else "tune" if self.start else self.objective.name
        return f"{what} on {','.join(map(str, self.train))}"


@dataclass(frozen=True)
class SearchPhase:
    """Fits that compete by validation accuracy; the earlier one wins a tie."""

    fits: tuple[FitSpec, ...]
    keep: int = 1
    """The number of best fits that later phases may start from."""

    @cached_property
    def key(self) -> str:
        return _hash([self.keep, *[fit_spec.key for fit_spec in self.fits]])

    @property
    def best(self) -> Winner:
        return Winner(self, 0)


@dataclass(frozen=True)
class Winner:
    """The fit at this rank of a phase."""

    phase: SearchPhase
    rank: int = 0

    @property
    def key(self) -> str:
        return f"{self.phase.key}/{self.rank}"


def required_fits(phase: SearchPhase) -> Iterator[FitSpec]:
    """Yield every fit of a plan once, each after those it starts from."""
    seen: set[str] = set()

    def walk(phase: SearchPhase) -> Iterator[FitSpec]:
        for fit_spec in phase.fits:
            if fit_spec.start and fit_spec.start.phase.key not in seen:
                seen.add(fit_spec.start.phase.key)
                yield from walk(fit_spec.start.phase)
        yield from (fit_spec for fit_spec in phase.fits if fit_spec.key not in seen)
        seen.update(fit_spec.key for fit_spec in phase.fits)

    yield from walk(phase)


def rank_scores(scores: Sequence[float]) -> list[int]:
    """Return positions from the best score to the worst; the earlier one first among equals.

    >>> rank_scores([0.5, 0.75, 0.75])
    [1, 2, 0]
    """
    return sorted(range(len(scores)), key=lambda k: (-scores[k], k))


def _plain(value: object) -> object:
    """Return a field's value as plain data; of an objective, a penalty or a measurement also its name."""
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return {"name": getattr(value, "name", ""), **asdict(value)}


def _hash(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
