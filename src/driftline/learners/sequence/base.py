"""Base class for methods that train in phases and choose each phase's hyper-parameters on validation data.

Such a method returns in advance the fits that it needs for a number of steps. It keeps the labeled samples of
each step, and computes the fits when it must answer: at the end if the protocol evaluates only then, and otherwise
after each step, as if that were the last. An engine may compute the fits ahead; the result is the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from driftline.errors import RequirementError
from driftline.learners.base import Learner, Outcome, Recall
from driftline.learners.fit_plan import FitSpec, SearchPhase, SearchSpace, Winner, rank_scores, required_fits
from driftline.learners.sequence.search_budget import limit_to_budget
from driftline.reveal import RevealedLabels
from driftline.tasks import Task
from driftline.types import Inputs, JsonObject, Network, Samples, State, Targets, TrainingRound

ARRAYS = ("weights", "importance", "anchor", "start_weights")
BLOCK_NETWORKS = "conv-1 to conv-4, dense-1 to dense-4, res-1 to res-4"


@dataclass
class PlannedLearner(Learner):
    """A learner defined by a plan of fits."""

    requires = "network"
    plans_fits: ClassVar[bool] = True

    transient = frozenset({"_initial", "_recall", "_selection"})

    def __post_init__(self) -> None:
        self.set_search_space(SearchSpace())
        self.set_fit_lookup(lambda key, whole: None)

    def set_search_space(self, selection: SearchSpace) -> None:
        self._selection = selection

    @property
    def selection(self) -> SearchSpace:
        """The search space."""
        return self._selection

    def set_fit_lookup(self, recall: Recall) -> None:
        self._recall = recall

    def plan(self, n_steps: int) -> SearchPhase:
        """Return the last phase of the plan for this number of steps; its fits lead to the earlier phases."""
        raise NotImplementedError

    def within_budget(self, n_steps: int) -> SearchPhase:
        """Return the plan with as many fits as the budget allows."""
        planned = self.plan(n_steps)
        if self.selection.budget != "method":
            return planned
        return limit_to_budget(planned, self.selection.size, type(self).__name__)

    def fit_plan(self, n_steps: int) -> list[FitSpec]:
        return list(required_fits(self.within_budget(n_steps)))

    def compute_fit(self, key: str, step_samples: list[TrainingRound], report: Callable[[int, int], None]) -> Outcome:
        self.step_samples[:] = step_samples
        return self.run_fit(
            next(fit_spec for fit_spec in self.fit_plan(len(step_samples)) if fit_spec.key == key), report
        )

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self._initial = copy.deepcopy(model)
        if not hasattr(model, "dropout"):  # values of dropout that change nothing are not tried
            self.set_search_space(replace(self.selection, dropout=(0.0,)))
        self.step_samples: list[TrainingRound] = []
        """Inputs, labels and split of each step; the split may be missing or None."""
        self.outcomes: dict[str, Outcome] = {}
        self.n_steps_fitted: int = 0
        """The number of steps the present model was fitted on; 0 for the initial one."""

    @property
    def layer_names(self) -> list[str]:
        """The named layers of the network, from stem to head."""
        from torch import nn

        layers = getattr(self._initial, "layers", None)
        if not isinstance(layers, nn.ModuleDict):
            raise RequirementError(
                "named blocks", f"{type(self).__name__} needs a network of named blocks: {BLOCK_NETWORKS}"
            )
        return list(layers)

    def receive(self, shown: RevealedLabels) -> None:
        self._add(shown.x, shown.y, shown.split)

    def learn(self, x: Inputs, y: Targets) -> None:
        self._add(x, y, None)

    def _add(self, x: Inputs, y: Targets, split: object) -> None:
        self.step_samples.append((x, y, split))
        if not self.evaluated_at_end:
            self.deploy_best()

    def finish(self) -> None:
        if self.evaluated_at_end and self.step_samples:
            self.deploy_best()

    def deploy_best(self) -> None:
        """Deploy the best network of the plan for the steps so far."""
        self.n_steps_fitted = len(self.step_samples)
        self.model = self.network_of(self.within_budget(self.n_steps_fitted).best)

    def outcome(self, fit_spec: FitSpec, whole: bool = True) -> Outcome:
        """Return the result of a fit, computed if it is unknown; without its arrays unless `whole`."""
        known = self.outcomes.get(fit_spec.key)
        if known is None or (whole and "weights" not in known):  # weights were dropped, or never loaded
            self.outcomes[fit_spec.key] = self._recall(fit_spec.key, whole) or self.run_fit(fit_spec)
        return self.outcomes[fit_spec.key]

    def chosen(self, pick: Winner) -> FitSpec:
        """Return the fit at this rank of a phase; weights of fits that cannot be picked any more are dropped."""
        fits = pick.phase.fits
        order = rank_scores([self.outcome(fit_spec, whole=False)["score"] for fit_spec in fits])
        for loser in order[pick.phase.keep :]:
            self.outcomes[fits[loser].key] = without_arrays(self.outcomes[fits[loser].key])
        return fits[order[pick.rank]]

    def network_of(self, pick: Winner) -> Network:
        """Return the network at this rank of a phase."""
        fit_spec = self.chosen(pick)
        network = self.initial_network(fit_spec)
        network.load_state_dict(self.outcome(fit_spec)["weights"])
        network.dropout = 0.0
        return network

    def initial_network(self, fit_spec: FitSpec) -> Network:
        """Return the network that a fit starts with."""
        from driftline.learners.sequence.growth import expand

        plain = fit_spec.start is None or fit_spec.from_initial
        network = copy.deepcopy(self._initial) if plain else self.network_of(fit_spec.start)  # type: ignore[arg-type]
        return expand(network, fit_spec.growth, self.seed.child("growth")) if fit_spec.growth else network

    def run_fit(self, fit_spec: FitSpec, report: Callable[[int, int], None] = lambda done, of: None) -> Outcome:
        """Return the result of a fit, computed on the steps it names."""
        from driftline.learners.sequence.fit import FitRun
        from driftline.training.step_data import StepData

        before = self.outcome(self.chosen(fit_spec.start)) if fit_spec.start else {}
        network = self.initial_network(fit_spec)
        used = sorted({*fit_spec.train, *fit_spec.valid})
        data_by_step = {t: StepData.of(*self.step_samples[t]) for t in used}
        if fit_spec.measurement:
            data, batch = data_by_step[fit_spec.train[-1]], self.selection.batch
            found = fit_spec.measurement.measure(network, self._task, data, before, batch, self.seed)
            return {**{name: value for name, value in before.items() if name != "start_weights"}, **found}
        self.restrict(network, fit_spec, before)
        inherited = {}
        if fit_spec.penalty and fit_spec.start:
            same_step = self.chosen(fit_spec.start).train == fit_spec.train
            inherited = fit_spec.penalty.inherited(before, same_step)
        before = {**before, **inherited}
        fit = FitRun(fit_spec, network, before, data_by_step, self._task, self.selection, self.seed)
        return {**inherited, **fit.run(report)}

    def restrict(self, network: Network, fit_spec: FitSpec, before: Outcome) -> None:
        """Freeze the layers that the fit does not train."""
        from driftline.models.block_networks.base import train_only_layers

        if fit_spec.growth:
            if fit_spec.growth.frozen:
                network.freeze(before=fit_spec.growth.steps - 1, moving_statistics=fit_spec.moving_statistics)
        elif fit_spec.top or fit_spec.layers is not None:
            layers = before["order"][: fit_spec.top] if fit_spec.top else fit_spec.layers or ()
            train_only_layers(network, layers, moving_statistics=fit_spec.moving_statistics)

    def fit_table(self) -> list[JsonObject]:
        if not self.n_steps_fitted:
            return []
        fits = self.fit_plan(self.n_steps_fitted)
        picks = [
            self.within_budget(self.n_steps_fitted).best,
            *(fit_spec.start for fit_spec in fits if fit_spec.start),
        ]
        picked = {self.chosen(pick).key for pick in picks}
        return [
            {**fit_spec.as_row(), **_outcome_row(self.outcomes[fit_spec.key]), "picked": fit_spec.key in picked}
            for fit_spec in fits
            if fit_spec.trains
        ]

    def state(self) -> State:
        saved = super().state()
        return {**saved, "model": None} if self.n_steps_fitted else saved  # it is one of the outcomes

    def restore(self, saved: State) -> None:
        super().restore(
            {name: value for name, value in saved.items() if not (name == "model" and saved["n_steps_fitted"])}
        )
        if self.n_steps_fitted:
            self.model = self.network_of(self.within_budget(self.n_steps_fitted).best)


def without_arrays(outcome: Outcome) -> Outcome:
    """Return a result without its arrays."""
    return {name: value for name, value in outcome.items() if name not in ARRAYS}


def _outcome_row(outcome: Outcome) -> JsonObject:
    return {"score": outcome["score"], "epoch": outcome["epoch"], "epochs": len(outcome["curve"]) - 1}
