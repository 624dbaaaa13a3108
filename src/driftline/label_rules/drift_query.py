"""Drift query: a few labels at random, and many once they show a drift.

A share of the budget is spent at random, the rest is saved. The answers to the labels that arrive go to DDM (Gama et
al., "Learning with Drift Detection", SBIA 2004); when it fires, every label is asked for until the burst is over or
what was saved is spent. Error rates are (errors + 1) / (labels + 2), because after 30 right answers plain DDM fires at
the first error. So the budget holds at every moment, and without a drift a part of it is never spent. Bursts
after a detector are an idea of Krawczyk et al., "Combining active learning with concept drift detection for data
stream mining", IEEE Big Data 2018; how they are paid for is our choice.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from driftline.label_rules.base import Query
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.types import State

FEWEST = 30  # labels before DDM decides
DEVIATIONS = 3.0  # DDM: standard deviations above the lowest error rate at which it fires


@register("label-rule", "drift-query")
@dataclass
class DriftQuery(Query):
    """A part of the budget at random; the rest in bursts, when the errors on arrived labels show a drift (DDM)."""

    at_random: Annotated[float, Field(gt=0, le=1)] = 0.5  # share of the budget that is spent at random
    burst: Annotated[int, Field(ge=1)] = 100  # samples after an alarm whose labels are all asked for

    uses_answers: ClassVar[bool] = True

    def prepare(self, task: Task, seed: Seed) -> None:
        super().prepare(task, seed)
        self.burst_end, self.alarms, self.drawn = 0, 0, 0
        self.labels, self.errors = 0, 0.0
        self.lowest_rate, self.lowest_spread = math.inf, math.inf

    def asks(self, certainty: float, draw: float) -> bool:
        rate = self.share * self.at_random
        left = math.ceil((self.drawn + 1) / rate) - self.seen + 1
        by_chance = self.drawn < rate * self.seen and draw * left < 1
        self.drawn += int(by_chance)
        return by_chance or self.seen <= self.burst_end

    def observe(self, correct: np.ndarray) -> None:
        for error in (1 - np.asarray(correct, float)).tolist():
            self.labels, self.errors = self.labels + 1, self.errors + error
            if self.labels < FEWEST:
                continue
            rate = (self.errors + 1) / (self.labels + 2)
            spread = math.sqrt(rate * (1 - rate) / self.labels)
            if rate + spread <= self.lowest_rate + self.lowest_spread:
                self.lowest_rate, self.lowest_spread = rate, spread
            if rate + spread > self.lowest_rate + DEVIATIONS * self.lowest_spread:
                self.alarms, self.burst_end = self.alarms + 1, self.seen + self.burst
                self.labels, self.errors = 0, 0.0
                self.lowest_rate, self.lowest_spread = math.inf, math.inf

    def state(self) -> State:
        names = ("burst_end", "alarms", "drawn", "labels", "errors", "lowest_rate", "lowest_spread")
        return {**super().state(), **{name: getattr(self, name) for name in names}}

    def restore(self, state: State) -> None:
        super().restore(state)
        for name in state.keys() - super().state().keys():
            setattr(self, name, state[name])
