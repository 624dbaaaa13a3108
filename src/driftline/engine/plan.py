"""From a spec to the stages it needs, each once; everything that can be refused is refused here, before any work."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftline import registry
from driftline.benchmarks.base import Layout
from driftline.data import Dataset
from driftline.engine import fits
from driftline.engine.rivals import contest_stages, merged
from driftline.engine.stages import Stage, dataset_of, materials, new_model, teacher_of
from driftline.errors import UserError
from driftline.jobs import Job, filled, learner_class
from driftline.learners.pooled import Pooled
from driftline.seeds import Seed
from driftline.spec import Spec
from driftline.tasks import TextToText
from driftline.training.model import as_model
from driftline.training.trials import Trial
from driftline.types import Reveal, Stream


@dataclass(frozen=True)
class Plan:
    """Stages in an order in which every stage comes after those it needs."""

    stages: tuple[Stage, ...]
    notes: tuple[str, ...] = ()
    trials: Mapping[str, Trial] = field(default_factory=dict)
    """What the fits carry out, by `Stage.trial`."""

    @property
    def run_keys(self) -> list[str]:
        return [stage.key for stage in self.stages if stage.kind == "deploy"]


def read_anew(spec: Spec, where: Path | None) -> Dataset:
    """The data of a spec; the file may have changed since this process last read it."""
    dataset_of.cache_clear()
    data = filled("dataset", spec.data)
    return dataset_of(data.name, json.dumps(data.settings, sort_keys=True), where)


def plan(
    spec: Spec,
    where: Path | None,
    finished: Callable[[str], bool] = lambda key: False,
    dataset: Dataset | None = None,
) -> Plan:
    """What a spec needs computed.

    `finished`: whether the run of this key is there. A method of which all are has shown that it can be run. `dataset`:
    the spec's, if it was just read.
    """
    dataset = dataset or read_anew(spec, where)
    jobs = spec.jobs(default_model=dataset.model)
    keys = _keys(jobs, dataset.fingerprint)
    proven = {job.label for job in jobs} - {job.label for job, key in zip(jobs, keys, strict=True) if not finished(key)}
    trials = _check(jobs, spec, where, proven)
    _, layout = materials(jobs[0], where)  # whether there is an upstream model is the same for all of them
    stages: list[Stage] = []
    deciding: dict[str, list[Stage]] = {}  # the contest of a method is the same for all seeds
    for job, key in zip(jobs, keys, strict=True):
        if job.label not in deciding:
            deciding[job.label] = list(contest_stages(job, dataset.fingerprint, layout.upstream is not None))
            stages += deciding[job.label]
        fits_ahead = trials[job.label] if job.contest is None else []  # a method that has not chosen cannot say which
        before = [*_before(job, layout, fits_ahead, dataset.fingerprint), *deciding[job.label][-1:]]
        needs = tuple(stage.key for stage in before)
        stages += [*before, Stage(key, "deploy", job.model_dump(mode="json"), needs)]
    return Plan(merged(stages), _notes(layout), {trial.key: trial for some in trials.values() for trial in some})


def _keys(jobs: list[Job], fingerprint: str) -> list[str]:
    """The key of each job; the files that a method names are looked for once, not for each seed."""
    content = {label: job.files() for label, job in {job.label: job for job in jobs}.items()}
    return [job.key(fingerprint, content[job.label]) for job in jobs]


def _before(job: Job, layout: Layout, trials: list[Trial], fingerprint: str) -> Iterator[Stage]:
    """What a run needs of its own: the upstream model first, if there is one, then the fits of its method's plan."""
    if layout.upstream is not None:
        yield Stage(job.upstream_key(fingerprint), "upstream", job.model_dump(mode="json"))
    yield from _fits(job, trials, fingerprint)


def _fits(job: Job, trials: list[Trial], fingerprint: str) -> Iterator[Stage]:
    """The fits that a run needs, each after those it starts from; these in turn are grown from where they started."""
    if not trials:
        return
    content, privileged = job.model_dump(mode="json"), learner_class(job.method.name).privileged
    with_needs: dict[str, tuple[str, ...]] = {}
    for trial in trials:
        starts = trial.start.phase.trials if trial.start else ()
        needs = tuple(dict.fromkeys(key for start in starts for key in with_needs[start.key]))
        key = job.trial_key(fingerprint, trial.key, privileged)
        with_needs[trial.key] = (*needs, key)
        yield Stage(key, "fit", content, needs, trial.key, trial.name)


def _check(jobs: list[Job], spec: Spec, where: Path | None, proven: set[str]) -> dict[str, list[Trial]]:
    """Build everything once for the first seed, so that what does not fit together is refused before it runs.

    What each method plans to fit, which is the same for all seeds. One that is `proven` is built only if it plans fits.
    """
    trials: dict[str, list[Trial]] = {}
    given = {choice.name: choice.settings for choice in spec.methods}
    for job in jobs[:: len(spec.seeds)]:
        if job.label in proven and not learner_class(job.method.name).plans_fits:
            trials[job.label] = []
            continue
        dataset, layout = materials(job, where)
        model = new_model(job, dataset)
        if isinstance(dataset.task, TextToText) and not as_model(model).generates_text:
            raise UserError(
                f"{job.model.name} chooses among classes, and answers in '{dataset.name}' are texts: use small-bart or "
                "seq2seq, or, where the data allow it, answers that are classes"
            )
        learner = registry.get("method", job.method.name)(**job.method.settings)
        stream = fits.stream_for(learner, layout)
        _must_come(job.reveal.delay, stream)
        if not as_model(model).is_network:
            idle = sorted(set(given[job.method.name]) & set(Pooled.__dataclass_fields__))
            if idle:
                raise UserError(
                    f"{job.method.name}.{idle[0]} means nothing to {job.model.name}: it is not trained by gradients"
                )
        _must_be_trained(job, model, layout)
        if layout.upstream is not None:
            teacher_of(job, layout)
        learner.seed = Seed(job.seed)
        if layout.selection is not None:
            learner.choose_by(layout.selection)
        learner.prepare(model, dataset.task, layout.upstream)
        trials[job.label] = fits.ahead(learner, job, layout)
        _check_rivals([of_point[0] for of_point in job.trials()], model, where)
    return trials


def _must_come(delay: int, stream: Stream) -> None:
    """Refuse labels that would come after the stream's end; where samples come one by one, each is a step."""
    last = stream[len(stream) - 1]
    steps = int(last.samples.time[-1]) + 1 if last.in_turn and last.samples.time is not None else len(stream)
    if delay >= steps:
        raise UserError(f"labels that come {delay} steps late never come in {steps} steps")


def _must_be_trained(job: Job, model: Any, layout: Layout) -> None:
    """Refuse a method that would stay with random weights: it never sees a label, or never trains the features."""
    method = learner_class(job.method.name)
    unlabelled = method.needs(job.method.settings) is Reveal.INPUTS
    if not (unlabelled or (method.keeps_features and _has_hidden_weights(model))):
        return
    adapter = as_model(model)
    untaught = job.options.get("upstream_updates") == 0 and adapter.is_network  # which says that it comes trained
    pretrained = untaught if adapter.is_pretrained is None else adapter.is_pretrained
    if pretrained or (layout.upstream is not None and not untaught):
        return
    why = "is never shown a label" if unlabelled else "answers by a network's features and never trains them"
    way = _way_to_train(job.benchmark, job.options)
    raise UserError(f"{job.method.name} {why}, so it needs a trained model to start from: {way}")


def _has_hidden_weights(model: Any) -> bool:
    """Whether a network has weights before its last layer; the features of one without are the inputs themselves."""
    if not as_model(model).is_network:
        return False
    from driftline.training.features import linear_layers

    last = sum(weights.numel() for layer in linear_layers(model)[-1:] for weights in layer.parameters())
    return bool(sum(weights.numel() for weights in model.parameters()) > last)


def _way_to_train(benchmark: str, options: Mapping[str, Any]) -> str:
    """How a benchmark comes by a trained model."""
    if "upstream" in options:
        return f"--set {benchmark}.upstream=1 (or more)"
    weights = "give weights (--set model.weights=FILE)"
    if "upstream_updates" in options:
        return f"{weights}, or upstream_updates above 0 and data with images to train on"
    return f"{benchmark} trains none before its first step, so {weights} to a model that takes them"


def _check_rivals(rivals: list[Job], model: Any, where: Path | None) -> None:
    """Settings that mean nothing, and pools too small for the streams to choose by, are refused before any trial."""
    for k, rival in enumerate(rivals):
        if not k:  # they differ in the method's settings alone
            dataset, layout = materials(rival, where)
        learner = registry.get("method", rival.method.name)(**rival.method.settings)
        learner.seed = Seed(rival.seed)
        learner.prepare(model, dataset.task, layout.upstream)


def _notes(layout: Layout) -> tuple[str, ...]:
    """What a user should know before the numbers come."""
    left_out = layout.protocol.get("left_out_periods", {})
    if not left_out:
        return ()
    shown = ", ".join(f"{name} ({n})" for name, n in list(left_out.items())[:5])
    return (
        f"{len(left_out)} period(s) with too few samples are left out: {shown}{', ...' if len(left_out) > 5 else ''}",
    )
