"""Training from scratch on the final step or on all steps: the baselines of Seq-to-Final.

Ji, Alaa and Sontag, "Seq-to-Final": `baseline` and `oracle` see the final step only, the oracle a much
larger one; `seq-erm`, `seq-irm` and `seq-dro` pool all steps. All are chosen by the final step's validation part.

IRM adds, per step, the square of the derivative of its loss by a scale on the outputs, in an unbiased estimate from two
halves of the batch; the reference code has a scale per class and sums over steps, this takes one scale and the mean
(`training.objectives`). DRO descends on the step with the largest loss of each round of batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from driftline.learners.base import Role
from driftline.learners.fit_plan import FitSpec, SearchPhase, SearchSpace
from driftline.learners.sequence.base import PlannedLearner
from driftline.learners.settings import NonNegative
from driftline.registry import register
from driftline.training.objectives import ERM, Objective, objective

Pooling = Literal["erm", "weighted", "irm", "dro"]
"""Registered objectives that train one network on several steps."""


def pooled_phase(n_steps: int, valid: tuple[int, ...], minimized: Objective, selection: SearchSpace) -> SearchPhase:
    """Return a grid of fits from the initial weights on steps 0 to `n_steps` - 1.

    On one step alone every objective is plain risk minimization, and shared as such.
    """
    train, minimized = tuple(range(n_steps)), minimized if n_steps > 1 else ERM()
    return SearchPhase(tuple(FitSpec(train, valid, objective=minimized, **point) for point in selection.points()))


def final_phase(n_steps: int, selection: SearchSpace) -> SearchPhase:
    """Return a grid of fits from the initial weights on the last step alone."""
    last = (n_steps - 1,)
    return SearchPhase(tuple(FitSpec(last, last, **point) for point in selection.points()))


@register("method", "baseline")
@dataclass
class FinalOnly(PlannedLearner):
    """Training on the final step alone."""

    role: ClassVar[Role] = "baseline"

    def plan(self, n_steps: int) -> SearchPhase:
        return final_phase(n_steps, self.selection)


@register("method", "oracle")
@dataclass
class Oracle(PlannedLearner):
    """Training on many more samples of the final step than other methods get."""

    is_oracle: ClassVar[bool] = True
    role: ClassVar[Role] = "upper-bound"

    def plan(self, n_steps: int) -> SearchPhase:
        return final_phase(n_steps, self.selection)


@dataclass
class AllSteps(PlannedLearner):
    """Training on all steps together, by ERM, IRM or DRO."""

    objective: Pooling = "erm"  # training objective
    irm_weight: NonNegative = 1.0  # weight of IRM's penalty

    cost_free = frozenset({"irm_weight"})

    def plan(self, n_steps: int) -> SearchPhase:
        return pooled_phase(n_steps, (n_steps - 1,), objective(self.objective, self.irm_weight), self.selection)


register("method", "seq-erm")(AllSteps)
register("method", "seq-irm")(partial(AllSteps, objective="irm"))
register("method", "seq-dro")(partial(AllSteps, objective="dro"))
