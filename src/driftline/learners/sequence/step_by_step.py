"""Step-by-step fine-tuning: SFT, EWC and SST of Seq-to-Final.

Seq-to-Final (Ji, Alaa, Sontag): SFT tunes the same network, EWC holds it near all earlier ones by Fisher information,
SST adds side modules at each step and freezes what was there. Every step is chosen by its own validation part.

`decay` is how SFT's learning rate falls along the steps: chosen at each step ("none"), or along the paper's linear or
exponential schedules, the best of which at the final step is kept; "chosen" lets all of them compete. Departs from
the reference code, which picks the family of schedules by test accuracy and lets one schedule start from another's
final weights.

`beam` keeps this many of the best models after each step, where a step may tune different layers (`layers`, for example
"search"); 1 is greedy. The paper names this search; its code does not have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from driftline.learners.fit_plan import FitSpec, SearchPhase
from driftline.learners.sequence.history_then_tune import LayerwiseTuning
from driftline.learners.sequence.layer_rules import rule_per_step
from driftline.learners.settings import Count
from driftline.registry import register

Schedule = Literal["none", "linear", "exponential"]
LINEAR = ((1e-3, 1e-4), (1e-4, 1e-5))  # the first step's rate, and what is taken off at each step
EXPONENTIAL = ((2e-3, 0.5), (2e-4, 0.5), (2e-4, 0.75))  # the first step's rate, and its factor at each step


def lr_schedules(decay: str, n_steps: int) -> list[list[float | None]]:
    """Return the learning rate of each step for each schedule of a family; None where it is searched.

    >>> lr_schedules("exponential", 3)[0]
    [0.002, 0.001, 0.0005]
    """
    if decay == "linear":
        return [[max(start - k * less, less) for k in range(n_steps)] for start, less in LINEAR]
    if decay == "exponential":
        return [[start * factor**k for k in range(n_steps)] for start, factor in EXPONENTIAL]
    return [[None] * n_steps]


@dataclass
class StepByStep(LayerwiseTuning):
    """Training on the first step, then tuning on each later one."""

    decay: Literal["none", "linear", "exponential", "chosen"] = "none"
    """How the learning rate falls along the steps; none: chosen at each step; chosen: all compete."""
    beam: Count = 1  # number of best models to keep after each step

    def plan(self, n_steps: int) -> SearchPhase:
        families = ("none", "linear", "exponential") if self.decay == "chosen" else (self.decay,)
        last = [self._along(schedule) for family in families for schedule in lr_schedules(family, n_steps)]
        return SearchPhase(tuple(fit_spec for phase in last for fit_spec in phase.fits), self.beam)

    def _along(self, schedule: list[float | None]) -> SearchPhase:
        """Return the last phase of a plan with these learning rates."""
        first = self.selection.points(**({"lr": (schedule[0],)} if schedule[0] else {}))
        phase = SearchPhase(tuple(FitSpec((0,), (0,), **point) for point in first), self.beam)
        for step, rule in enumerate(rule_per_step(self.layers, len(schedule) - 1), start=1):
            phase = self.tuned(phase, step, layers=rule, steps=step + 1, lr=schedule[step])
        return phase


register("method", "sft")(StepByStep)
register("method", "seq-ewc")(partial(StepByStep, penalty="fisher-all"))
register("method", "sst-1")(partial(StepByStep, structure="side-1"))
register("method", "sst-b")(partial(StepByStep, structure="side-block"))
