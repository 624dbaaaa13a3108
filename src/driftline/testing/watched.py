"""A learner of which all that goes in and comes out is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from driftline.learners.base import Learner
from driftline.learners.unchanged import changed, picture
from driftline.reveal import Shown
from driftline.state import digest
from driftline.testing.answers import check_answers
from driftline.testing.looking import leads_to, watched_randomness
from driftline.types import Answers


class Watched:
    """A learner behind glass: what goes in and comes out is looked at, the learner itself is as it was."""

    def __init__(self, learner: Learner, name: str, labels: list[np.ndarray]) -> None:
        self.learner, self.name, self.labels = learner, name, labels
        self.handed: list[tuple[Any, str]] = []

    def answer(self, x: Any) -> Answers:
        answers: Answers = self._looked_at("answer", x)
        return answers

    def predict(self, x: Any) -> Answers:
        before = picture_of(self.learner)
        answers: Answers = self._looked_at("predict", x)
        moved = changed(before, picture_of(self.learner))
        assert not moved, f"{self.name}: predict must change nothing, but it changed {', '.join(moved)}"
        return answers

    def receive(self, shown: Shown) -> None:
        self.learn(shown.x, shown.y)

    def learn(self, x: Any, y: Any) -> None:
        self._hand(y, "learn")
        with self._sentence("learn"):
            self._looked_at("learn", x, y)

    def gauges(self) -> Mapping[str, float]:
        return self.learner.gauges()

    def finish(self) -> None:
        with self._sentence("finish"), watched_randomness(f"{self.name}: finish"):
            self.learner.finish()

    def check_handed(self) -> None:
        for thing, before in self.handed:
            assert digest(thing) == before, f"{self.name} modifies the inputs or labels that it is handed"

    def _looked_at(self, verb: str, *given: Any) -> Any:
        self._hand(given[0], verb)
        with self._sentence(verb), watched_randomness(f"{self.name}: {verb}"):
            result = getattr(self.learner, verb)(*given)
        self.check_handed()
        if verb != "learn":
            check_answers(result, len(given[0]), f"{self.name}: {verb}")
        return result

    def _hand(self, thing: Any, verb: str) -> None:
        assert not leads_to(thing, self.labels), f"what {verb} is handed leads to labels that were not revealed"
        self.handed.append((thing, digest(thing)))

    @contextmanager
    def _sentence(self, verb: str) -> Iterator[None]:
        try:
            yield
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{self.name}: {verb} fails: {error!r}") from error


def picture_of(learner: Learner) -> dict[str, str]:
    """Return `picture`, or fail with a sentence if the state cannot be saved."""
    try:
        return picture(learner)
    except TypeError as error:
        raise AssertionError(f"its state cannot be saved: {error}") from error
