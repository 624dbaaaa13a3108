"""Tuning of one network into the next: LP-FT, I-FT, D-FT, ST, SFT, EWC and SST of Seq-to-Final.

Seq-to-Final (Ji, Alaa, Sontag). History: all earlier steps pooled, by ERM, IRM or DRO, then tuning on the final step
(LP-FT, I-FT, D-FT, ST); or training on the first step, then tuning on each later one (SFT, EWC, SST). Final mode: which
layers are tuned in which order (`learners.sequence.layer_rules`), and which penalty they have. Structure: the same
network; side modules beside frozen blocks, summed with them; low-rank changes of frozen weights; or a second copy of
every layer ("separate", the frozen joint model of the paper's Table 15). Methods that start from the same history share
it.

Step by step, each step is chosen by its own validation part. `decay` is how the learning rate falls along the steps:
chosen at each step ("none"), or along the paper's linear or exponential schedules, the best of which at the final step
is kept; "chosen" lets all of them compete. `beam` keeps this many of the best models after each step, where a step may
tune different layers (`layers`, for example "search"); 1 is greedy. The paper names this search; its code does not have
it.

Departs from the reference code, which trains I-FT and D-FT's history on the final step too, moves the batch-norm
statistics of frozen layers, gives side-tuning a stem and a head that start at random, picks the family of schedules by
test accuracy and lets one schedule start from another's final weights. `ends` says what becomes of stem and head:
copied from history and tuned ("previous", the default), at random ("random", the reference's), or summed with the old
ones ("additive").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from driftline import registry
from driftline.errors import UserError
from driftline.learners.fit_plan import Expansion, FitSpec, SearchPhase, Winner
from driftline.learners.sequence.base import PlannedLearner
from driftline.learners.sequence.from_scratch import final_phase, pooled_phase
from driftline.learners.sequence.growth import expand
from driftline.learners.sequence.layer_rules import DATA_DRIVEN, rule_per_step, tuning_stages
from driftline.learners.settings import Count, NonNegative
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.measurements import Fisher, Measurement, ReferenceFisher
from driftline.training.objectives import objective
from driftline.training.regularization import AdjacentSteps, FisherToStart, Penalty
from driftline.types import JsonObject, Network, Samples

Structure = Literal["same", "side-1", "side-block", "low-rank-add", "low-rank-multiply", "separate"]
History = Literal["erm", "weighted", "irm", "dro", "steps"]
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
class LayerwiseTuning(PlannedLearner):
    """Training on earlier steps, pooled or one after the other, then tuning on the next."""

    history: History = "erm"  # objective on the earlier steps together; steps: training on each in turn
    irm_weight: NonNegative = 1.0  # weight of IRM's penalty
    decay: Literal["none", "linear", "exponential", "chosen"] = "none"
    """How the learning rate falls along the steps; none: chosen at each step; chosen: all compete."""
    beam: Count = 1  # number of best models to keep after each step
    layers: str = "all"  # layers to tune, in order: all, fc>all, ... (`learners.sequence.layer_rules`)
    structure: Structure = "same"
    """The same network, side modules beside frozen blocks, or low-rank changes of frozen weights."""
    ends: Literal["previous", "random", "additive"] = "previous"
    """Stem and head of side modules: copied and tuned, at random, or summed with the old ones."""
    rank: int = 4  # rank of low-rank changes
    penalty: Literal["none", "l2", "l1", "fisher", "fisher-all"] = "none"
    """Penalty on the distance from the earlier weights."""
    reference_fisher: bool = False  # use the Fisher information of the reference code
    low_rank_start: Literal["identity", "reference"] = "identity"
    """Start of low-rank changes: no change, or as in the reference code."""
    moving_statistics: bool = False  # let batch-norm statistics of frozen layers move, as in the reference code
    tied: bool = True  # penalize the distance of stem and head, or of separate layers, from the step before
    from_initial: bool = False  # tune from initial weights: the earlier network is only the penalty's anchor

    cost_free = frozenset({"irm_weight"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.history != "steps" and (self.decay, self.beam) != ("none", 1):
            raise UserError("decay and beam need history=steps: otherwise there is one step to tune on")
        if self.structure != "same" and (self.layers != "all" or self.penalty != "none"):
            raise UserError(f"structure={self.structure} sets its own layers and penalty: leave both at their defaults")
        if self.from_initial and (self.penalty == "none" or self.layers != "all"):
            raise UserError("from_initial needs layers=all and a penalty: without a penalty it equals the baseline")

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if self.structure != "same":  # what cannot be built is refused before anything is trained
            expand(self._initial, self.growth(2), self.seed)
        for rule in self.layers.split(":"):
            if rule not in ("all", *DATA_DRIVEN):
                tuning_stages(rule, self.layer_names)

    def plan(self, n_steps: int) -> SearchPhase:
        return self._step_by_step(n_steps) if self.history == "steps" else self._after_history(n_steps)

    def _after_history(self, n_steps: int) -> SearchPhase:
        """Return the plan to train on all earlier steps together, then tune on the final one."""
        if n_steps == 1:
            return final_phase(n_steps, self.selection)  # there is no history yet
        if ":" in self.layers:
            raise UserError(f"layers={self.layers} has rules for several steps, and this method tunes one: use sft")
        before = tuple(range(n_steps - 1))
        past = pooled_phase(n_steps - 1, before, objective(self.history, self.irm_weight), self.selection)
        return self.tuned(past, n_steps - 1, layers=self.layers)

    def _step_by_step(self, n_steps: int) -> SearchPhase:
        """Return the plan to train on the first step, then tune on each later one."""
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

    def growth(self, steps: int) -> Expansion:
        ends = "side-1" if self.ends == "additive" else "separate"  # a side module of stem or head is a full one
        blocks, copy = self.structure, self.ends == "previous"
        return Expansion(blocks, ends, steps, copy=copy, rank=self.rank, start=self.low_rank_start)

    def tuned(
        self, starts: SearchPhase, step: int, *, layers: str = "all", steps: int = 2, lr: float | None = None
    ) -> SearchPhase:
        """Return the last phase that tunes the best of `starts` on a step; a chain if layers are tuned in stages."""
        points = self._points(lr)
        if self.structure != "same":
            return self._phase(starts, step, points, growth=self.growth(steps))
        if self._fisher:
            kind = ReferenceFisher if self.reference_fisher else Fisher
            fisher = kind(self.selection.fisher_examples, self._fisher.accumulates)
            starts = self._measured(starts, step - 1, fisher)
        if layers in DATA_DRIVEN:
            starts = self._measured(starts, step, registry.get("measurement", layers)())
            wide = [{**point, "top": n} for n in range(1, len(self.layer_names) + 1) for point in points]
            return self._phase(starts, step, wide)
        if layers == "all":
            return self._phase(starts, step, points)
        for alternatives in tuning_stages(layers, self.layer_names):
            wide = [{**point, "layers": chosen} for chosen in alternatives for point in points]
            starts = self._phase(starts, step, wide)
        return starts

    @property
    def _penalty(self) -> type[Penalty] | None:
        """Return the class of the penalty."""
        if self.structure != "same":
            return AdjacentSteps
        kind: type[Penalty] | None = None if self.penalty == "none" else registry.get("penalty", self.penalty)
        return kind

    @property
    def _fisher(self) -> type[FisherToStart] | None:
        """Return the class of the penalty, if it needs the Fisher information."""
        kind = self._penalty
        return kind if kind and issubclass(kind, FisherToStart) else None

    def _points(self, lr: float | None) -> list[JsonObject]:
        """Return the grid; a penalty on all weights replaces weight decay, one on stem and head is added to it."""
        rates = {} if lr is None else {"lr": (lr,)}
        if self.structure not in ("same", "separate"):
            tied = self.tied and self.ends != "additive"  # what is summed has no weights to be tied to
            return self.selection.points(extra=self.selection.adjacent if tied else (), **rates)
        if self.penalty == "none" and not (self.structure == "separate" and self.tied):
            return self.selection.points(**rates)
        strengths = self.selection.fisher if self._fisher else self.selection.weight_decay
        return self.selection.points(weight_decay=(0.0,), extra=strengths, **rates)

    def _phase(
        self, starts: SearchPhase, step: int, points: list[JsonObject], growth: Expansion | None = None
    ) -> SearchPhase:
        """Return the phase that tunes the best of `starts` with each point of a grid."""
        moving, fits = self.moving_statistics, []
        make = partial(FitSpec, from_initial=self.from_initial, moving_statistics=moving, growth=growth)
        for pick in _picks(starts):
            for point in points:
                strength, rest = point.get("strength", 0.0), {k: v for k, v in point.items() if k != "strength"}
                penalty = self._penalty(strength) if self._penalty else None
                fits.append(make((step,), (step,), start=pick, penalty=penalty, **rest))
        return SearchPhase(tuple(fits), starts.keep)

    def _measured(self, starts: SearchPhase, step: int, measurement: Measurement) -> SearchPhase:
        """Return a phase with the same networks, measured on a step."""
        picks = _picks(starts)
        fits = [FitSpec((step,), (step,), start=pick, measurement=measurement) for pick in picks]
        return SearchPhase(tuple(fits), starts.keep)


def _picks(starts: SearchPhase) -> list[Winner]:
    """Return the best of a phase, as many as it keeps."""
    return [Winner(starts, rank) for rank in range(min(starts.keep, len(starts.fits)))]


STEP_BY_STEP = partial(LayerwiseTuning, history="steps")

register("method", "seq-ft")(LayerwiseTuning)
register("method", "lp-ft")(partial(LayerwiseTuning, layers="fc>all"))
register("method", "i-ft")(partial(LayerwiseTuning, history="irm"))
register("method", "d-ft")(partial(LayerwiseTuning, history="dro"))
register("method", "st-1")(partial(LayerwiseTuning, structure="side-1"))
register("method", "st-b")(partial(LayerwiseTuning, structure="side-block"))
register("method", "sft")(STEP_BY_STEP)
register("method", "seq-ewc")(partial(STEP_BY_STEP, penalty="fisher-all"))
register("method", "sst-1")(partial(STEP_BY_STEP, structure="side-1"))
register("method", "sst-b")(partial(STEP_BY_STEP, structure="side-block"))
