"""Periodic reset of any method to its state before the first step.

`{name: resetting, method: tent, every: 1000}`. Before the answers of steps 0, N, 2N, ... everything that the method
holds is put back as `prepare` left it: weights, the state of its optimizer, running means, counters, and with them
the random numbers that it draws by its counters. Steps count whether or not the method updated in them. RDumb is this
around ETA.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from driftline import registry
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.settings import Count, check_settings
from driftline.reveal import Shown
from driftline.tasks import Task
from driftline.types import Answers, Reveal, Samples


class Start:
    """A snapshot of a learner's state."""

    def __init__(self, learner: Learner) -> None:
        self._names = set(vars(learner))
        self._saved = copy.deepcopy(learner.state())

    def again(self, learner: Learner) -> None:
        """Restore the learner to the snapshot."""
        for name in set(vars(learner)) - self._names:
            delattr(learner, name)
        learner.restore(copy.deepcopy(self._saved))


@registry.register("method", "resetting")
@dataclass
class Resetting(Learner):
    """Another method, reset every `every` steps."""

    method: str = "tent"
    every: Count = 1000  # steps between resets
    options: dict[str, Any] | None = None  # settings of the method; None: its defaults

    sees: ClassVar[Reveal] = Reveal.INPUTS
    quick: ClassVar[Mapping[str, str]] = {"every": "reset_every"}
    min_batch: ClassVar[int] = 2  # what the most demanding method needs

    transient = frozenset({"_start"})

    @classmethod
    def wraps(cls, settings: Mapping[str, Any]) -> str:
        return str(settings.get("method", cls.method))

    @classmethod
    def needs(cls, settings: Mapping[str, Any]) -> Reveal:
        """Return the least that must be revealed to the inner method."""
        make = registry.get("method", cls.wraps(settings))
        sees: Reveal = getattr(make, "func", make).sees
        return sees

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        check_settings(self)
        make = registry.get("method", self.method)
        try:
            self.inner: Learner = make(**(self.options or {}))
        except TypeError as error:
            raise UserError(f"resetting.options are not settings of {self.method}: {error}") from error
        self.inner.seed, self.inner.waits = self.seed, self.waits
        self.inner.prepare(model, task, upstream)
        self.steps = 0
        self._start = Start(self.inner)

    @property
    def model(self) -> Any:
        """The model of the inner method."""
        return self.inner.model

    def predict(self, x: Any) -> Answers:
        return self.inner.predict(x)

    def answer(self, x: Any) -> Answers:
        if self.steps % self.every == 0:
            self._start.again(self.inner)
        self.steps += 1
        return self.inner.answer(x)

    def learn(self, x: Any, y: Any) -> None:
        self.inner.learn(x, y)

    def receive(self, shown: Shown) -> None:
        self.inner.receive(shown)

    def gauges(self) -> Mapping[str, float]:
        return self.inner.gauges()

    def finish(self) -> None:
        self.inner.finish()
