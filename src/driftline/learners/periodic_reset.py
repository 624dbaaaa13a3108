"""Periodic reset of any method to its state before the first step.

`{name: periodic-reset, method: tent, reset_every: 1000}`. Before the answers of steps 0, N, 2N, ... the method returns
to its state after `prepare`: weights, optimizer state, running means, counters, and the random numbers it draws.
Steps count whether or not the method updated in them. RDumb is a periodic reset of ETA.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from driftline import registry
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.fit_plan import SearchSpace
from driftline.learners.settings import Count, check_settings
from driftline.reveal import RevealedLabels
from driftline.tasks import Task
from driftline.types import Answers, Inputs, JsonObject, Network, Reveal, Samples, Targets


class Snapshot:
    """A snapshot of a learner's state."""

    def __init__(self, learner: Learner) -> None:
        self._names = set(vars(learner))
        self._saved = copy.deepcopy(learner.state())

    def restore_into(self, learner: Learner) -> None:
        """Restore the learner to the snapshot."""
        for name in set(vars(learner)) - self._names:
            delattr(learner, name)
        learner.restore(copy.deepcopy(self._saved))


@dataclass
class WrappingLearner(Learner):
    """Another method, which a subclass shows other inputs or changes between steps."""

    method: str = "tent"  # name of the method to wrap
    options: JsonObject | None = None  # settings of the method; None: its defaults

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    wraps: ClassVar[str] = "method"
    min_batch: ClassVar[int] = 2  # what the most demanding method needs

    transient = frozenset({"_selection"})

    def __post_init__(self) -> None:
        self._selection: SearchSpace | None = None

    def set_search_space(self, selection: SearchSpace) -> None:
        self._selection = selection

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        check_settings(self)
        self.wrapped = self.new_method(model, task, upstream)

    def new_method(self, model: Network, task: Task, upstream: Samples | None) -> Learner:
        """Return the method before its first step."""
        make = registry.get("method", self.method)
        try:
            learner: Learner = make(**(self.options or {}))
        except TypeError as error:
            raise UserError(f"{type(self).__name__}: options are not settings of {self.method}: {error}") from error
        if self._selection is not None:
            learner.set_search_space(self._selection)
        learner.seed, learner.evaluated_at_end = self.seed, self.evaluated_at_end
        learner.prepare(model, task, upstream)
        return learner

    @property
    def model(self) -> Network:
        """The model of the inner method."""
        return self.wrapped.model

    @property
    def smallest_batch(self) -> int:
        return self.wrapped.smallest_batch

    @property
    def batch_dependent(self) -> bool:
        return self.wrapped.batch_dependent

    def predict(self, x: Inputs) -> Answers:
        return self.wrapped.predict(x)

    def answer(self, x: Inputs) -> Answers:
        return self.wrapped.answer(x)

    def learn(self, x: Inputs, y: Targets) -> None:
        self.wrapped.learn(x, y)

    def receive(self, shown: RevealedLabels) -> None:
        self.wrapped.receive(shown)

    def diagnostics(self) -> Mapping[str, float]:
        return self.wrapped.diagnostics()

    def finish(self) -> None:
        self.wrapped.finish()


@registry.register("method", "periodic-reset")
@dataclass
class PeriodicReset(WrappingLearner):
    """Another method, reset every `reset_every` steps."""

    reset_every: Count = 1000  # steps between resets

    quick: ClassVar[Mapping[str, str]] = {"reset_every": "reset_every"}
    transient = frozenset({"_snapshot"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._snapshot = Snapshot(self.wrapped)
        self.steps = 0

    def answer(self, x: Inputs) -> Answers:
        if self.steps % self.reset_every == 0:
            self._snapshot.restore_into(self.wrapped)
        self.steps += 1
        return super().answer(x)
