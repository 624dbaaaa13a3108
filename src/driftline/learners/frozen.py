"""Frozen model: the baseline that is never updated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftline.learners.base import Learner, Role
from driftline.registry import register
from driftline.reveal import LabelFeed
from driftline.types import Answers, Reveal


@register("method", "frozen")
@dataclass
class Frozen(Learner):
    """The model as it was before the first step."""

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    role: ClassVar[Role] = "baseline"

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        """Answer all samples at once: no label changes anything."""
        answers = self.predict(feed.x)
        for row in answers.rows():
            feed.reveal_next(row)
        return answers
