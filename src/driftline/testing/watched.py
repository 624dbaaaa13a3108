"""A learner whose arguments and results are checked, and what records its run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driftline.io.serialization import digest
from driftline.learners.base import Learner
from driftline.learners.predict_check import changed_parts, fingerprint
from driftline.reveal import RevealedLabels
from driftline.testing.answers import check_answers
from driftline.testing.inspect import can_reach, no_global_randomness
from driftline.types import Answers, Inputs, Probe, Samples, Step, Targets


@dataclass
class AnswerLog:
    """Recorder of every answer, and of its digest."""

    answers: list[str] = field(default_factory=list)
    values: list[Answers] = field(default_factory=list)

    def add_answers(self, step: Step, answers: Answers) -> None:
        self.answers.append(digest([answers.prediction, answers.scores]))
        self.values.append(answers)

    def add_probe(self, step: Step, probe: Probe, answers: Answers) -> None:
        """Ignore probes, which must not matter."""

    def add_diagnostics(self, step: Step, diagnostics: Mapping[str, float]) -> None:
        """Ignore diagnostics."""


@dataclass(frozen=True)
class SameProbe:
    """The same probe after every step and at the end; none if there are no samples."""

    samples: Samples | None

    def due(self, step: Step | None) -> Sequence[Probe]:
        return [] if self.samples is None else [Probe("probe", self.samples)]


class WatchedLearner:
    """A learner whose arguments and results are checked at every call."""

    def __init__(self, learner: Learner, name: str, labels: list[np.ndarray]) -> None:
        self.learner, self.name, self.labels = learner, name, labels
        self.arguments: list[tuple[object, str]] = []

    def answer(self, x: Inputs) -> Answers:
        answers: Answers = self._checked("answer", x)
        return answers

    def predict(self, x: Inputs) -> Answers:
        before = state_digests(self.learner)
        answers: Answers = self._checked("predict", x)
        moved = changed_parts(before, state_digests(self.learner))
        assert not moved, f"{self.name}: predict must change nothing, but it changed {', '.join(moved)}"
        return answers

    def receive(self, shown: RevealedLabels) -> None:
        self.learn(shown.x, shown.y)

    def learn(self, x: Inputs, y: Targets) -> None:
        self._add_argument(y, "learn")
        with self._explained("learn"):
            self._checked("learn", x, y)

    def diagnostics(self) -> Mapping[str, float]:
        return self.learner.diagnostics()

    def finish(self) -> None:
        with self._explained("finish"), no_global_randomness(f"{self.name}: finish"):
            self.learner.finish()

    def check_arguments(self) -> None:
        for argument, before in self.arguments:
            assert digest(argument) == before, f"{self.name} modifies the inputs or labels of its methods"

    def _checked(self, method: str, *arguments: Any) -> Any:
        self._add_argument(arguments[0], method)
        with self._explained(method), no_global_randomness(f"{self.name}: {method}"):
            result = getattr(self.learner, method)(*arguments)
        self.check_arguments()
        if method != "learn":
            check_answers(result, len(arguments[0]), f"{self.name}: {method}")
        return result

    def _add_argument(self, argument: object, method: str) -> None:
        assert not can_reach(argument, self.labels), (
            f"labels that were not revealed can be reached from {method}'s input"
        )
        self.arguments.append((argument, digest(argument)))

    @contextmanager
    def _explained(self, method: str) -> Iterator[None]:
        try:
            yield
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{self.name}: {method} fails: {error!r}") from error


def state_digests(learner: Learner) -> dict[str, str]:
    """Return a digest of each part of the state; fail if the state cannot be saved."""
    try:
        return fingerprint(learner)
    except TypeError as error:
        raise AssertionError(f"its state cannot be saved: {error}") from error
