"""Build what a job names: its dataset, scenario, model, pretrainer and learner.

Planning, runs and reloaded runs all build them here, so that they agree.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from driftline import data, models, registry
from driftline.benchmarks.base import Benchmark, Calibration, Scenario
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.io import serialization
from driftline.learners.base import Learner
from driftline.learners.fit_plan import SearchSpace
from driftline.learners.supervised.base import SupervisedLearner
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.spec.job import Job
from driftline.spec.methods import method_facts
from driftline.spec.settings import Choice, with_defaults
from driftline.tasks import Task
from driftline.training.model import as_model
from driftline.types import Network, Reveal, Stream, TrainingRound

CACHED = 2
"""Datasets that a process keeps in memory."""


class DatasetCache:
    """The datasets that a process has read, or was sent, and the training rounds of its latest streams."""

    def __init__(self, data_dir: Path | None = None) -> None:
        self.data_dir = data_dir
        self._datasets: OrderedDict[tuple[str, str], Dataset] = OrderedDict()
        self._rounds: OrderedDict[str, list[TrainingRound]] = OrderedDict()

    def load(self, choice: Choice) -> Dataset:
        """Return a dataset, read once."""
        key = dataset_key(choice)
        if key not in self._datasets:
            self.add(choice, data.load(choice.name, choice.settings, data.data_folders(self.data_dir)))
        self._datasets.move_to_end(key)
        return self._datasets[key]

    def add(self, choice: Choice, dataset: Dataset) -> None:
        """Cache a dataset, and drop the least recently used one if there are too many."""
        self._datasets[dataset_key(choice)] = dataset
        while len(self._datasets) > CACHED:
            self._datasets.popitem(last=False)

    def fingerprint(self, choice: Choice) -> str | None:
        """Return the fingerprint of a dataset if it is in memory."""
        dataset = self._datasets.get(dataset_key(choice))
        return None if dataset is None else dataset.fingerprint

    def training_rounds(self, key: str, make: Callable[[], list[TrainingRound]]) -> list[TrainingRound]:
        """Return the training rounds of a stream, made once, since many fits need the same."""
        if key not in self._rounds:
            self._rounds[key] = make()
            while len(self._rounds) > CACHED:
                self._rounds.popitem(last=False)
        return list(self._rounds[key])


def dataset_key(choice: Choice) -> tuple[str, str]:
    """Return what identifies a dataset: its name and its settings with all defaults."""
    return choice.name, json.dumps(choice.settings, sort_keys=True)


def build_scenario(job: Job, datasets: DatasetCache, calibration: Path | None = None) -> tuple[Dataset, Scenario]:
    """Return the dataset of a job, and the scenario that its benchmark makes of it.

    `calibration`: the result of the job's calibration. If it needs one that is not there yet, the stream has the
    right steps but not the right content.
    """
    dataset = datasets.load(job.data)
    benchmark = registry.get("benchmark", job.benchmark)()
    if dataset.samples.known is not None:
        _check_label_times(job, benchmark)
    options = benchmark.options(**job.options)
    if calibration is not None:
        options = options.model_copy(update={"calibration": str(calibration)})
    scenario = benchmark.build_scenario(dataset, options, Seed(job.seed))
    if scenario.selection is None:
        scenario = replace(scenario, selection=SearchSpace.single(options.training_budget()))
    return dataset, scenario


def build_calibration(job: Job, dataset: Dataset) -> Calibration:
    """Return what the calibration of a job measures; `job`: see `Job.calibration_job`."""
    benchmark = registry.get("benchmark", job.benchmark)()
    calibration: Calibration = benchmark.calibration(dataset, benchmark.options(**job.options), Seed(job.seed))
    return calibration


def _check_label_times(job: Job, benchmark: Benchmark) -> None:
    """Refuse label times where they would have no meaning."""
    if not benchmark.follows_label_times:
        raise UserError(f"{job.benchmark} does not run on the clock of the data: leave out data.known")
    if job.reveal.delay:
        raise UserError("data.known says when labels arrive: leave out reveal.delay")
    for rule in job.reveal.rules:
        if registry.get("label-rule", rule.name).delays:
            raise UserError(f"data.known says when labels arrive: leave out {rule.display_name}")


def build_model(job: Job, dataset: Dataset) -> Network:
    """Return the model as initialized for the job's seed."""
    return initial_model(job.model, dataset, Seed(job.seed), shown_shape(job, dataset))


def shown_shape(job: Job, dataset: Dataset) -> tuple[int, ...]:
    """Return the shape of an input as the job's benchmark shows it; a text has none."""
    shape: tuple[int, ...] = registry.get("benchmark", job.benchmark).shown_shape(_input_shape(dataset))
    return shape


def _input_shape(dataset: Dataset) -> tuple[int, ...]:
    return tuple(getattr(dataset.samples.x, "shape", (0,))[1:])


def initial_model(choice: Choice, dataset: Dataset, seed: Seed, shape: tuple[int, ...] | None = None) -> Network:
    """Return a model with as many inputs and outputs as the dataset needs, for inputs of its shape or of another."""
    shape = _input_shape(dataset) if shape is None else shape
    settings = dict(choice.settings)
    if models.needs_published_answers(choice.name) and dataset.published_answers is not None:
        settings["published_answers"] = (dataset.samples.x, dataset.published_answers)
    return models.build(choice.name, shape, dataset.task.width, seed.child("init"), **settings)


def build_pretrainer(job: Job, scenario: Scenario) -> SupervisedLearner:
    """Return what trains the model on upstream samples; the method's settings override the benchmark's."""
    settings = {**scenario.pretrain_settings, **job.pretraining.settings}
    return new_pretrainer(Choice(name=job.pretraining.name, settings=settings), Seed(job.seed))


def new_pretrainer(choice: Choice, seed: Seed) -> SupervisedLearner:
    """Return a pretrainer that is ready to prepare a model."""
    pretrainer: SupervisedLearner = registry.get("pretraining", choice.name)(
        **with_defaults("pretraining", choice).settings
    )
    pretrainer.seed = seed.child("upstream")
    return pretrainer


def load_pretrained(model: Network, path: Path) -> int | None:
    """Load the result of a Pretrain stage into a model; return the MACs that its training took."""
    saved = serialization.load(path)
    as_model(model).restore(saved["model"])
    return None if saved["macs"] is None else sum(saved["macs"])


def build_learner(job: Job, model: Network, dataset: Dataset, scenario: Scenario) -> Learner:
    """Return the job's method, prepared with this model."""
    learner: Learner = registry.get("method", job.method.name)(**job.method.settings)
    learner.seed, learner.evaluated_at_end = Seed(job.seed).child("learner"), scenario.evaluated_at_end
    if scenario.selection is not None:
        learner.set_search_space(scenario.selection)
    if job.lora is not None:
        from driftline.training.lora import add_adapters  # torch is not loaded for estimators

        add_adapters(model, job.lora.rank, job.lora.alpha, Seed(job.seed).child("lora"))
    learner.prepare(model, dataset.task, scenario.upstream)
    return learner


def build_reveal(job: Job, task: Task) -> RevealPolicy:
    """Return what decides which labels of the job's stream are revealed."""
    level = registry.get("benchmark", job.benchmark).reveals
    if job.reveal.rules and level is Reveal.INPUTS:
        raise UserError(
            f"{job.benchmark} reveals no labels to any method, so label rules have no effect: leave them out"
        )
    rules = {rule.display_name: registry.get("label-rule", rule.name)(**rule.settings) for rule in job.reveal.rules}
    delay, budget, missing = job.reveal.delay, job.reveal.budget, job.reveal.missing
    return RevealPolicy(task, level, Seed(job.seed), delay, budget, missing, rules)


def stream_for(job: Job, scenario: Scenario) -> Stream:
    """Return the stream of a job: the oracle stream for methods that may see it."""
    if not method_facts(job.method.name).is_oracle:
        return scenario.stream
    if scenario.oracle_stream is None:
        raise UserError(f"{job.method.display_name} needs more samples of the final step than there are: leave it out")
    return scenario.oracle_stream
