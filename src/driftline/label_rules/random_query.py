"""Random query: labels at random places, as many as the budget allows."""

import math
from dataclasses import dataclass
from typing import ClassVar

from driftline.label_rules.base import Query
from driftline.registry import register


@register("label-rule", "random-query")
@dataclass
class RandomQuery(Query):
    """The label of one sample, drawn at random, of each 1 / share: the baseline of queries, with the same budget."""

    uses_answers: ClassVar[bool] = False

    def asks(self, certainty: float, draw: float) -> bool:
        left = math.ceil((self.asked + 1) / self.share) - self.seen + 1  # samples to choose from, with this one
        return draw * left < 1
