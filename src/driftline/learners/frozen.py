"""The model as it was at deployment: the line that every method must stay above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from driftline.learners.base import Learner
from driftline.registry import register
from driftline.types import Reveal


@register("method", "frozen")
@dataclass
class Frozen(Learner):
    """Never changes."""

    sees: ClassVar[Reveal] = Reveal.INPUTS
