"""Reload a finished run: its networks, rebuilt from the fits in the store.

Nothing is trained here: a missing fit is an error. Evaluating these networks is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from driftline.benchmarks.base import Scenario
from driftline.data import Dataset
from driftline.engine.build import DatasetCache, build_learner, build_model, build_scenario
from driftline.engine.stages.fit import recall, training_rounds
from driftline.errors import UserError
from driftline.io.user_objects import is_object
from driftline.learners.base import Outcome, Recall
from driftline.learners.fit_plan import SearchSpace, Winner
from driftline.learners.sequence.base import PlannedLearner
from driftline.models.block_networks.joint import JointNetwork
from driftline.record.run import Run
from driftline.spec.job import Job
from driftline.spec.keys import fit_key
from driftline.spec.methods import method_facts
from driftline.spec.settings import Choice, with_defaults
from driftline.store.store import Store
from driftline.training.interpolation import truncate_to_step
from driftline.training.mac_counter import uncounted
from driftline.training.step_data import StepData
from driftline.training.torch_model import torch_model
from driftline.types import Network, Samples


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run's network as it was after a step."""

    step: int
    key: str
    """Identifies the network, also across methods, which share their fits."""
    network: Network


@dataclass(frozen=True, eq=False)
class ReloadedRun:
    """A finished run with its learner."""

    job: Job
    store: Store
    data_dir: Path | None
    dataset: Dataset
    scenario: Scenario
    learner: PlannedLearner

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """The networks that led to the final one, one per step at most, the final one last.

        A joint network holds one for every step; a method that trains only once has one.
        """
        by_step: dict[int, Snapshot] = {}
        pick: Winner | None = self.learner.within_budget(self.learner.n_steps_fitted).best
        while pick is not None:
            fit_spec = self.learner.chosen(pick)
            step = max(fit_spec.train)
            if fit_spec.trains and step not in by_step:  # of several fits on one step the last counts
                key = fit_key(self.job, self.dataset.fingerprint, fit_spec.key, self.learner.is_oracle)
                by_step[step] = Snapshot(step, key, uncounted(self.learner.network_of(pick)).eval())
            pick = fit_spec.start
        snapshots = [by_step[step] for step in sorted(by_step)]
        final = snapshots[-1]
        if len(snapshots) > 1 or not isinstance(final.network, JointNetwork):
            return snapshots
        return [Snapshot(t, f"{final.key}/{t}", truncate_to_step(final.network, t)) for t in range(final.network.steps)]

    @property
    def final(self) -> Network:
        """The network that the run ended with."""
        return self.snapshots[-1].network

    @cached_property
    def test(self) -> Samples:
        """The samples of the probe at the end of the run."""
        for probe in self.scenario.probes.due(None):
            return probe.samples
        raise UserError(f"{self.job.benchmark} has no probe at the end")

    @property
    def last_round(self) -> StepData:
        """The samples that the last step revealed."""
        return StepData.of(*self.learner.step_samples[-1])

    @property
    def selection(self) -> SearchSpace:
        return self.scenario.selection or SearchSpace()

    def answers(self, network: Network) -> np.ndarray:
        """Return the answers of a network on the test set."""
        return np.asarray(self.dataset.task.decode(torch_model(network).predict(self.test.x)).prediction)

    def accuracy(self, network: Network) -> float:
        """Return the accuracy of a network on the test set."""
        return float(self.dataset.task.correct(self.answers(network), self.test.y).mean())

    def with_method(self, name: str) -> ReloadedRun:
        """Return another method with the same settings and seed; its fits must be in the store."""
        job = self.job.model_copy(update={"method": with_defaults("method", Choice(name=name)), "label": name})
        return _reload(job, self.store, self.data_dir)


def reload_run(run: Run, data_dir: Path | None = None) -> ReloadedRun:
    """Reload a finished run."""
    reloaded = _reload(
        Job.model_validate({**run.card.run.to_dict(), "label": run.method}), Store(run.folder.parents[1]), data_dir
    )
    if reloaded.dataset.fingerprint != run.card.data.fingerprint:
        raise UserError(f"the data of '{run.method}' have changed since it was run: run it again")
    return reloaded


def has_saved_networks(run: Run) -> bool:
    """Return whether the networks of a run can be reloaded: its method plans fits, computed as stages."""
    asked = run.card.run
    if any(is_object(part.name) for part in (asked.data, asked.model, asked.method)):
        return False  # the objects are gone
    return method_facts(asked.method.name).plans_fits and run.card.protocol["trials"] > 0


def _reload(job: Job, store: Store, data_dir: Path | None) -> ReloadedRun:
    datasets = DatasetCache(data_dir)
    dataset, scenario = build_scenario(job, datasets)
    learner = build_learner(job, build_model(job, dataset), dataset, scenario)
    assert isinstance(learner, PlannedLearner)
    learner.set_fit_lookup(_known(job, recall(job, dataset.fingerprint, store, None), store))
    learner.step_samples = training_rounds(job, dataset, scenario, datasets)
    learner.n_steps_fitted = len(learner.step_samples)
    return ReloadedRun(job, store, data_dir, dataset, scenario, learner)


def _known(job: Job, look_up: Recall, store: Store) -> Recall:
    """Return a function that looks up fits and refuses missing ones, which a learner would train."""

    def known(key: str, whole: bool) -> Outcome | None:
        outcome = look_up(key, whole)
        if outcome is None:
            raise UserError(
                f"the fits of {job.label}, seed {job.seed}, are not in {store.folder}: run it with the same settings, "
                "and in another store if this one has the finished run "
                f"(`driftline run {job.benchmark} --data {job.data.name} --model {job.model.name} "
                f"--methods {job.method.name} ...`)"
            )
        return outcome

    return known
