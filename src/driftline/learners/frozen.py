"""Frozen model: the baseline that is never updated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftline.learners.base import Learner, Role
from driftline.registry import register
from driftline.reveal import Turns
from driftline.types import Answers, Reveal


@register("method", "frozen")
@dataclass
class Frozen(Learner):
    """The model as it was before the first step."""

    sees: ClassVar[Reveal] = Reveal.INPUTS
    role: ClassVar[Role] = "baseline"

    def in_turn(self, turns: Turns) -> Answers:
        """Answer all samples at once: no label changes anything."""
        answers = self.predict(turns.x)
        for row in answers.rows():
            turns.tell(row)
        return answers
