"""Fits: the training rounds that a method plans, computed once for all methods that plan the same."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from driftline import registry
from driftline.benchmarks.base import Scenario
from driftline.data import Dataset
from driftline.engine.build import DatasetCache, build_learner, build_model, build_reveal, build_scenario, stream_for
from driftline.engine.stages.base import Stage, StageContext, Workload, cost_text
from driftline.engine.stages.metering import metered
from driftline.errors import DamagedFile
from driftline.io import serialization
from driftline.learners.base import Learner, Outcome, Recall
from driftline.learners.fit_plan import FitSpec
from driftline.learners.sequence.base import without_arrays
from driftline.reveal import delivery_steps
from driftline.spec.job import Job
from driftline.spec.keys import fit_key
from driftline.spec.methods import method_facts
from driftline.store.store import Store
from driftline.tasks import Task
from driftline.types import Answers, Reveal, Stream, TrainingRound

if TYPE_CHECKING:
    from driftline.training.mac_counter import MacCounter


@dataclass(frozen=True)
class Fit(Stage):
    """Train a network as one fit of a method's plan says."""

    fit_spec: str
    """The key of the fit in the plan."""
    fit_title: str
    starts: tuple[str, ...]
    """Keys of the fits that this one starts from."""

    kind: ClassVar[str] = "fit"
    shareable: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return f"{self.fit_title} seed {self.job.seed}"

    @property
    def needs(self) -> tuple[str, ...]:
        return self.starts

    def current_key(self, fingerprint: str) -> str:
        return fit_key(self.job, fingerprint, self.fit_spec, method_facts(self.job.method.name).is_oracle)

    def cost_key(self, workload: Workload) -> str:
        fit_spec, sizes = workload.fit_spec(self.fit_spec), workload.step_sizes(self.job)
        parts = self.job.model_dump(mode="json", include={"benchmark", "data", "model", "reveal"})
        free = registry.get("benchmark", self.job.benchmark).options.fit_cost_free
        options = {name: value for name, value in self.job.options.items() if name not in free}
        work = {
            **fit_spec.cost_key(),
            "train": [sizes[step] for step in fit_spec.train],
            "valid": [sizes[step] for step in fit_spec.valid],
        }
        return cost_text(self.kind, parts, options, work)

    def cost_title(self, workload: Workload) -> str:
        last = len(workload.step_sizes(self.job)) - 1
        return "final" if last in workload.fit_spec(self.fit_spec).train else "historical"

    def compute(self, context: StageContext) -> None:
        started = time.perf_counter()
        dataset, scenario = build_scenario(self.job, context.datasets)
        model = build_model(self.job, dataset)
        meter = metered(model, context.profiler)
        learner = build_learner(self.job, model, dataset, scenario)
        assert meter is not None
        learner.set_fit_lookup(recall(self.job, dataset.fingerprint, context.store, None))
        rounds = training_rounds(self.job, dataset, scenario, context.datasets)
        outcome = learner.compute_fit(self.fit_spec, rounds, context.on_progress)
        cost = {"macs": (meter.forward, meter.backward), "seconds": time.perf_counter() - started}
        serialization.save({**outcome, **cost}, context.store.stage_path(self.key))


def plannable_fits(learner: Learner, job: Job, scenario: Scenario, task: Task) -> list[FitSpec]:
    """Return the fits that can be fitted before a run.

    All of them, if what is revealed does not depend on answers and probes come at the end; else none.
    """
    revealed = registry.get("benchmark", job.benchmark).reveals
    if not scenario.evaluated_at_end or revealed is not Reveal.LABELS:
        return []
    stream = stream_for(job, scenario)
    if not job.reveal.rules:
        return learner.fit_plan(len(stream) - job.reveal.delay)
    policy = build_reveal(job, task)
    return [] if policy.chain.uses_answers else learner.fit_plan(len(delivery_steps(stream, policy)))


def training_rounds(job: Job, dataset: Dataset, scenario: Scenario, datasets: DatasetCache) -> list[TrainingRound]:
    """Return the inputs and labels that a learner is given along the stream of a job."""
    key = fit_key(job, dataset.fingerprint, "", method_facts(job.method.name).is_oracle)
    return datasets.training_rounds(key, lambda: _revealed(stream_for(job, scenario), job, dataset))


def _revealed(stream: Stream, job: Job, dataset: Dataset) -> list[TrainingRound]:
    reveal = build_reveal(job, dataset.task)
    steps = (stream[t] for t in range(len(stream)))
    revealed = [reveal(step, Answers(step.samples.y)) for step in steps]  # the answers do not matter
    return [(labels.x, labels.y, labels.split) for labels in revealed if labels is not None]


def recall(job: Job, fingerprint: str, store: Store, meter: MacCounter | None) -> Recall:
    """Return a function that looks up finished fits; with a meter, it counts their MACs as the learner's, once."""
    counted: set[str] = set()
    is_oracle = method_facts(job.method.name).is_oracle

    def look_up(fit_spec: str, whole: bool) -> Outcome | None:
        path = store.stage_path(fit_key(job, fingerprint, fit_spec, is_oracle))
        try:
            outcome: Outcome = serialization.load(path) if whole else without_arrays(serialization.load_metadata(path))
        except DamagedFile:
            return None
        forward, backward = outcome.pop("macs")
        outcome.pop("seconds")
        if meter is not None and fit_spec not in counted:
            meter.forward, meter.backward = meter.forward + forward, meter.backward + backward
            counted.add(fit_spec)
        return outcome

    return look_up
