"""Base class for methods that train in phases and choose each phase's hyper-parameters on validation data.

Such a method returns in advance, as trials, the fits it needs for a number of steps. It keeps the labelled samples of
each step, and computes the fits when it must answer: at the end if the protocol evaluates only then, and otherwise
after each step, as if that were the last. An engine may compute the fits ahead; the result is the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from driftline.errors import UserError
from driftline.learners.base import Learner, Outcome, Recall
from driftline.learners.fit_plan import FitSpec, SearchPhase, SearchSpace, Winner, rank_scores, required_fits
from driftline.learners.sequence.budget import limit_to_budget
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
        """Return the last phase of the plan for this number of steps; its trials lead to the earlier phases."""
        raise NotImplementedError

    def within_budget(self, n_steps: int) -> SearchPhase:
        """Return the plan with as many trials as the budget allows."""
        planned = self.plan(n_steps)
        if self.selection.budget != "method":
            return planned
        return limit_to_budget(planned, self.selection.size, type(self).__name__)

    def fit_plan(self, n_steps: int) -> list[FitSpec]:
        return list(required_fits(self.within_budget(n_steps)))

    def compute_fit(self, key: str, step_samples: list[TrainingRound], report: Callable[[int, int], None]) -> Outcome:
        self.step_samples[:] = step_samples
        return self.carry_out(next(trial for trial in self.fit_plan(len(step_samples)) if trial.key == key), report)

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
            raise UserError(f"{type(self).__name__} needs a network of named blocks: {BLOCK_NETWORKS}")
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

    def outcome(self, trial: FitSpec, whole: bool = True) -> Outcome:
        """Return the result of a trial, computed if it is unknown; without its arrays unless `whole`."""
        known = self.outcomes.get(trial.key)
        if known is None or (whole and "weights" not in known):  # weights were dropped, or never loaded
            self.outcomes[trial.key] = self._recall(trial.key, whole) or self.carry_out(trial)
        return self.outcomes[trial.key]

    def chosen(self, pick: Winner) -> FitSpec:
        """Return the trial at this rank of a phase; weights of trials that cannot be picked any more are dropped."""
        trials = pick.phase.trials
        order = rank_scores([self.outcome(trial, whole=False)["score"] for trial in trials])
        for loser in order[pick.phase.keep :]:
            self.outcomes[trials[loser].key] = without_arrays(self.outcomes[trials[loser].key])
        return trials[order[pick.rank]]

    def network_of(self, pick: Winner) -> Network:
        """Return the network at this rank of a phase."""
        trial = self.chosen(pick)
        network = self.initial_network(trial)
        network.load_state_dict(self.outcome(trial)["weights"])
        network.dropout = 0.0
        return network

    def initial_network(self, trial: FitSpec) -> Network:
        """Return the network that a trial starts with."""
        from driftline.learners.sequence.growth import expand

        plain = trial.start is None or trial.from_initial
        network = copy.deepcopy(self._initial) if plain else self.network_of(trial.start)  # type: ignore[arg-type]
        return expand(network, trial.growth, self.seed.child("growth")) if trial.growth else network

    def carry_out(self, trial: FitSpec, report: Callable[[int, int], None] = lambda done, of: None) -> Outcome:
        """Return the result of a trial, computed on the steps it names."""
        from driftline.learners.sequence.fit import FitRun
        from driftline.training.step_data import StepData

        before = self.outcome(self.chosen(trial.start)) if trial.start else {}
        network = self.initial_network(trial)
        used = sorted({*trial.train, *trial.valid})
        data_by_step = {t: StepData.of(*self.step_samples[t]) for t in used}
        if trial.measurement:
            data, batch = data_by_step[trial.train[-1]], self.selection.batch
            found = trial.measurement.measure(network, self._task, data, before, batch, self.seed)
            return {**{name: value for name, value in before.items() if name != "start_weights"}, **found}
        self.restrict(network, trial, before)
        inherited = {}
        if trial.penalty and trial.start:
            same_step = self.chosen(trial.start).train == trial.train
            inherited = trial.penalty.inherited(before, same_step)
        before = {**before, **inherited}
        fit = FitRun(trial, network, before, data_by_step, self._task, self.selection, self.seed)
        return {**inherited, **fit.run(report)}

    def restrict(self, network: Network, trial: FitSpec, before: Outcome) -> None:
        """Freeze the layers that the trial does not train."""
        from driftline.models.block_networks.base import train_only_layers

        if trial.growth:
            if trial.growth.frozen:
                network.freeze(before=trial.growth.steps - 1, moving_statistics=trial.moving_statistics)
        elif trial.top or trial.layers is not None:
            layers = before["order"][: trial.top] if trial.top else trial.layers or ()
            train_only_layers(network, layers, moving_statistics=trial.moving_statistics)

    def fit_table(self) -> list[JsonObject]:
        if not self.n_steps_fitted:
            return []
        trials = self.fit_plan(self.n_steps_fitted)
        picks = [self.within_budget(self.n_steps_fitted).best, *(trial.start for trial in trials if trial.start)]
        picked = {self.chosen(pick).key for pick in picks}
        return [
            {**trial.as_row(), **_outcome_row(self.outcomes[trial.key]), "picked": trial.key in picked}
            for trial in trials
            if trial.trains
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
