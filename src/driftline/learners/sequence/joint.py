"""Joint models of Seq-to-Final: one network with layers for every step, trained together.

Seq-to-Final (Ji, Alaa, Sontag). The objective, as the reference code has it (the paper omits the first factor):

    1/(T+1) sum_t c_t L_t + decay sum_t |w_t|^2 + adjacent sum_{t>=1} |w_t - w_{t-1}|^2,   c_T = 3, else 1

`jm` has separate layers at each step; `jst-1` and `jst-b` a first network and, at each later step, side modules that
are summed with all before. One batch per step makes an update. `shared` layers are the same at all steps. Departs from
the code in that batch norm is left out of the adjacent norm as it is of the decay, and that all three are tuned with
the same number of fits as the others; under the paper's budget `jm` has three and the others one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from driftline.learners.fit_plan import Expansion, FitSpec, SearchPhase
from driftline.learners.sequence.base import PlannedLearner
from driftline.learners.sequence.from_scratch import final_phase
from driftline.learners.sequence.growth import expand
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.objectives import JointOverSteps
from driftline.training.regularization import AdjacentSteps
from driftline.types import Network, Samples


@dataclass
class JointTraining(PlannedLearner):
    """Joint model: one network per time step, with shared or tied layers."""

    structure: Literal["separate", "side-1", "side-block", "low-rank-add", "low-rank-multiply"] = "separate"
    """Separate layers at each step, side modules, or low-rank changes."""
    shared: tuple[str, ...] = ()  # layers that are the same at all steps
    rank: int = 4  # rank of low-rank changes

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)

        expand(self._initial, self.growth(2), self.seed)

    def growth(self, steps: int) -> Expansion:
        ends = "side-1" if self.structure.startswith("side") else "separate"
        return Expansion(self.structure, ends, steps, frozen=False, shared=self.shared, rank=self.rank)

    def plan(self, n_steps: int) -> SearchPhase:
        if n_steps == 1:
            return final_phase(n_steps, self.selection)  # one step has no neighbor
        tied = self.selection.adjacent if self.structure == "separate" else ()
        paper = {"lr": (1e-3,), "weight_decay": (1e-4,), "dropout": (0.5,)}
        points = self.selection.points(extra=tied, **(paper if self.selection.budget == "paper" else {}))
        ties = [AdjacentSteps(point.pop("strength", 0.0)) for point in points]
        train, valid = tuple(range(n_steps)), (n_steps - 1,)
        make = partial(FitSpec, train, valid, objective=JointOverSteps(), growth=self.growth(n_steps))
        return SearchPhase(tuple(make(penalty=tie, **point) for tie, point in zip(ties, points, strict=True)))


register("method", "jm")(JointTraining)
register("method", "jst-1")(partial(JointTraining, structure="side-1"))
register("method", "jst-b")(partial(JointTraining, structure="side-block"))
