"""Checks before any work: every method is built once, and what does not fit together is refused."""

from __future__ import annotations

import numpy as np

from driftline import registry
from driftline.benchmarks.base import Scenario
from driftline.data import Dataset
from driftline.engine.build import (
    DatasetCache,
    build_learner,
    build_model,
    build_pretrainer,
    build_reveal,
    build_scenario,
    shown_shape,
    stream_for,
)
from driftline.engine.stages.fit import plannable_fits
from driftline.errors import RequirementError, UserError
from driftline.learners.base import Learner
from driftline.learners.fit_plan import FitSpec
from driftline.learners.supervised.base import TRAINING_SETTINGS
from driftline.spec import Spec
from driftline.spec.job import Job
from driftline.spec.methods import learner_class, method_facts, required_reveal
from driftline.tasks import TextToText
from driftline.training.model import as_model
from driftline.types import Network, Reveal, Settings, Stream, take_rows


def check_methods(jobs: list[Job], spec: Spec, datasets: DatasetCache, finished: set[str]) -> dict[str, list[FitSpec]]:
    """Build the first job of each method, and return the fits that each plans; they are the same for all seeds.

    Methods that are `finished` have run before: they are not built, and their fits are not needed.
    """
    fit_specs: dict[str, list[FitSpec]] = {}
    for job, method in zip(jobs, spec.methods, strict=True):
        if job.label in finished:
            fit_specs[job.label] = []
        else:
            fit_specs[job.label] = _check_method(job, method.settings, datasets)
    return fit_specs


def _check_method(job: Job, given: Settings, datasets: DatasetCache) -> list[FitSpec]:
    dataset, scenario = build_scenario(job, datasets)
    model = build_model(job, dataset)
    _check_output(job, model, dataset)
    _check_network(job, model, dataset)
    _check_budget(job, model, scenario)
    _check_adapters(job, model, scenario)
    build_reveal(job, dataset.task)
    _check_delay(job.reveal.delay, stream_for(job, scenario))
    _check_unused(job, model, given)
    _check_trained(job, model, scenario)
    if scenario.upstream is not None:
        build_pretrainer(job, scenario)
    learner = build_learner(job, model, dataset, scenario)
    _check_batch(job, learner, stream_for(job, scenario))
    fit_specs = plannable_fits(learner, job, scenario, dataset.task)
    _check_candidates([jobs[0] for jobs in job.search_jobs()], model, datasets)
    return fit_specs


def _check_output(job: Job, model: Network, dataset: Dataset) -> None:
    """Refuse a classifier where answers are texts."""
    if isinstance(dataset.task, TextToText) and not as_model(model).generates_text:
        raise UserError(
            f"{job.model.display_name} is a classifier, but answers in '{dataset.name}' are texts: use small-bart or "
            "seq2seq, or, where the data allow it, answers that are classes"
        )


def _check_network(job: Job, model: Network, dataset: Dataset) -> None:
    """Refuse a user's network that does not take the inputs, or has another number of outputs than the task needs."""
    adapter, x = as_model(model), take_rows(dataset.samples.x, slice(0, 2))
    if registry.describe("model", job.model.name) or not adapter.is_network or adapter.generates_text:
        return
    shape = shown_shape(job, dataset)
    if len(shape) == 3:
        x = np.asarray(x)[:, : shape[0], : shape[1]]
    try:
        outputs = adapter.predict(x)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"model '{job.model.display_name}' fails on inputs of shape {shape} (images arrive as floats from 0 to 1 "
            f"with channels first): {type(error).__name__}: {error}"
        ) from error
    if outputs.shape != (len(x), dataset.task.width):
        raise UserError(
            f"model '{job.model.display_name}' returns outputs of shape {outputs.shape} for {len(x)} samples, and this "
            f"task needs {(len(x), dataset.task.width)}: give it a parameter `outputs`, or use --set model.head=new"
        )


def _check_budget(job: Job, model: Network, scenario: Scenario) -> None:
    """Refuse a budget of compute for a method whose compute is not counted, or not its own."""
    if job.budget_macs is None:
        return
    if not as_model(model).is_network:
        raise UserError(f"budget_macs: the compute of {job.model.display_name} is not counted; use a network")
    if method_facts(job.method.name).plans_fits and scenario.evaluated_at_end:
        raise UserError(
            f"budget_macs: {job.method.display_name} trains in fits that methods share, which a budget cannot cut; set "
            "epochs and the grid of the benchmark instead, or leave it out"
        )


def _check_adapters(job: Job, model: Network, scenario: Scenario) -> None:
    """Refuse adapters for a method that trains no network, and of a network that is not trained."""
    if job.lora is None:
        return
    method = method_facts(job.method.name).wrapped(job.method.settings) or job.method.name
    if not method_facts(method).trains_network:
        raise UserError(f"lora: {job.method.display_name} does not train a network's weights by labels: leave it out")
    if not as_model(model).is_network:
        raise UserError(f"lora: {job.model.display_name} is not a network: leave it out")
    if scenario.upstream is None and not as_model(model).is_pretrained:
        raise UserError(
            "lora: adapters change a trained network, and this one starts at random: train it upstream, for example "
            "with --upstream 1, or give it weights"
        )


def _check_delay(delay: int, stream: Stream) -> None:
    """Refuse labels that would arrive after the stream's end; where samples come one by one, each is a step."""
    last = stream[len(stream) - 1]
    steps = int(last.samples.time[-1]) + 1 if last.one_by_one and last.samples.time is not None else len(stream)
    if delay >= steps:
        raise UserError(
            f"The label delay is {delay} steps but the stream has only {steps}, so no label would be revealed. "
            f"Use --set reveal.delay={steps - 1} or less."
        )


def _check_batch(job: Job, learner: Learner, stream: Stream) -> None:
    """Refuse a stream whose first or last step is smaller than the method can answer."""
    smallest = learner.smallest_batch
    if smallest == 1:
        return
    size = min(1 if step.one_by_one else len(step.samples) for step in (stream[0], stream[len(stream) - 1]))
    if size < smallest:
        larger = f"increase it (--set {job.benchmark}.batch=64), or use" if "batch" in job.options else "use"
        raise RequirementError(
            f"{smallest} inputs per batch",
            f"{job.method.display_name} needs at least {smallest} inputs per batch with {job.model.display_name}, "
            f"and a batch of this stream has {size}: {larger} a network without batch normalization",
        )


def _check_unused(job: Job, model: Network, given: Settings) -> None:
    """Refuse settings of gradient training for a model that is not trained by gradients."""
    unused = sorted(set(given) & TRAINING_SETTINGS) if not as_model(model).is_network else []
    if unused:
        raise UserError(
            f"{job.method.display_name}.{unused[0]} has no effect: {job.model.display_name} is not trained by gradients"
        )


def _check_trained(job: Job, model: Network, scenario: Scenario) -> None:
    """Refuse a method that would keep random weights: it never sees a label, or never trains the features."""
    method = learner_class(job.method.name)
    unlabeled = required_reveal(job.method.name, job.method.settings) is Reveal.INPUTS
    if not (unlabeled or (method.frozen_features and _has_hidden_weights(model))):
        return
    adapter = as_model(model)
    pretrained = adapter.is_pretrained or (not unlabeled and adapter.loaded_weights is not None)
    untrained = job.options.get("upstream_updates") == 0 and adapter.is_network
    if pretrained or (scenario.upstream is not None and not untrained):
        return
    loaded = adapter.loaded_weights
    if loaded is not None and loaded.head == "new":
        raise UserError(
            f"{job.method.display_name} never sees labels, and the new head of {job.model.display_name} is untrained: "
            f"{_how_to_train_head(job.benchmark, job.options)}, or give weights for this number of classes"
        )
    why = "never sees labels" if unlabeled else "uses a network's features and never trains them"
    way = _how_to_pretrain(job.benchmark, job.options)
    if adapter.is_network and not registry.describe("model", job.model.name):
        way += "; if your network comes trained, set its attribute `pretrained = True`"
    raise RequirementError(
        "a pretrained model", f"{job.method.display_name} {why}, so it needs a pretrained model: {way}"
    )


def _has_hidden_weights(model: Network) -> bool:
    """Whether a network has weights before its last layer; otherwise its features are the inputs."""
    if not as_model(model).is_network:
        return False
    from driftline.training.features import linear_layers, own_features

    if own_features(model):
        return True
    last = sum(weights.numel() for layer in linear_layers(model)[-1:] for weights in layer.parameters())
    return bool(sum(weights.numel() for weights in model.parameters()) > last)


def _how_to_pretrain(benchmark: str, options: Settings) -> str:
    """Return how a user gets a pretrained model in a benchmark."""
    if "upstream" in options:
        return f"pretrain on the first period with --set {benchmark}.upstream=1"
    weights = "give weights (--set model.weights=FILE)"
    if "upstream_updates" in options:
        return f"{weights}, or upstream_updates above 0 and data with images to train on"
    return f"{benchmark} has no pretraining, so {weights} to a model that takes them"


def _how_to_train_head(benchmark: str, options: Settings) -> str:
    """Return how a user gets a new head trained before the stream."""
    if "upstream" in options:
        return f"pretrain on the first period with --set {benchmark}.upstream=1"
    if "upstream_updates" in options:
        return "use upstream_updates above 0 and data with samples to train on"
    return f"{benchmark} has no pretraining, so use a method that learns from labels"


def _check_candidates(jobs: list[Job], model: Network, datasets: DatasetCache) -> None:
    """Refuse candidate settings that a method rejects, and data too small for validation streams."""
    for k, job in enumerate(jobs):
        if not k:  # they differ in the method's settings alone
            dataset, scenario = build_scenario(job, datasets)
        build_learner(job, model, dataset, scenario)
