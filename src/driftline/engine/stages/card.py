"""The card of a run: everything a reader needs to interpret its numbers."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from driftline import device, registry
from driftline.benchmarks.base import Benchmark, Scenario
from driftline.data import Dataset
from driftline.engine.stages.search_round import SearchResult
from driftline.record.card import (
    Card,
    CodeVersion,
    ComputeCard,
    DataCard,
    DeviceCard,
    RunSettings,
    WeightsCard,
)
from driftline.record.recorder import TABLES
from driftline.spec.job import Job
from driftline.spec.keys import file_hashes, package_versions, run_revisions, score_revisions, sources_hash
from driftline.spec.methods import method_facts, required_reveal
from driftline.spec.settings import display_name
from driftline.types import JsonObject
from driftline.version import __version__

if TYPE_CHECKING:
    from driftline.models.weights import LoadedWeights


def build(
    *,
    job: Job,
    key: str,
    dataset: Dataset,
    scenario: Scenario,
    compute: ComputeCard,
    fits: list[JsonObject],
    selected: SearchResult | None,
    truncated: int | None,
    weights: LoadedWeights | None,
) -> Card:
    """Return the card of a finished run; it holds nothing that may differ between two runs of the same job.

    `fits`: the fits of a method that trains in phases. `truncated`: samples longer than the model reads.
    """
    benchmark = registry.get("benchmark", job.benchmark)()
    options = benchmark.options(**job.options)
    protocol = _protocol(job, benchmark, scenario, _selection(fits, selected, options.describe_validation()))
    metrics = _metrics(benchmark, options, protocol)
    card = Card(
        key=key,
        label=job.label,
        role=method_facts(job.method.name).role,
        run=RunSettings.model_validate(job.content()),
        question=benchmark.question,
        paper=benchmark.paper,
        departures=list(benchmark.departures),
        protocol=protocol,
        metrics=metrics,
        data=_data(dataset, truncated),
        compute=compute,
        device=DeviceCard() if compute.macs is None else DeviceCard.model_validate(device.describe()),
        user_files=file_hashes(job),
        code=_code(job, metrics),
        versions={"python": platform.python_version(), **package_versions()},
        tables=list(TABLES),
    )
    if weights is not None:
        card.weights = WeightsCard(**asdict(weights))
    return card


def _code(job: Job, metrics: Iterable[str]) -> CodeVersion:
    return CodeVersion(
        driftline=__version__,
        sources=sources_hash(),
        revisions=run_revisions(job),
        score_revisions=score_revisions(job.benchmark, metrics),
    )


def _protocol(job: Job, benchmark: Benchmark, scenario: Scenario, selection: JsonObject) -> JsonObject:
    """Return what a reader must know about the stream, the labels that were shown and how settings were chosen."""
    rules = [display_name(rule, "label-rule") for rule in job.reveal.rules]
    return {
        "selection": "none: fixed hyper-parameters",
        **scenario.protocol,
        **selection,
        "revealed": benchmark.reveals.name.lower(),
        "label_delay_steps": job.reveal.delay,
        "labels_per_step": job.reveal.budget or "all",
        "labels_missing": job.reveal.missing,
        **({"label_rules": rules} if rules else {}),
        "required_reveal": required_reveal(job.method.name, job.method.settings).name.lower(),
        "reset_policy": "none",
        "normalisation": "inside the model; estimated from its own training data",
        "seeds": f"named children of {job.seed}: split or sequence, init, learner, budget, bootstrap",
        "threads": 1,
    }


def _data(dataset: Dataset, truncated: int | None) -> DataCard:
    task = repr(dataset.task)
    return DataCard(
        name=dataset.name,
        fingerprint=dataset.fingerprint,
        samples=len(dataset.samples),
        kind=type(dataset.task).__name__,
        task=task if len(task) < 200 else task[:200] + "...",
        notes=list(dataset.notes),
        **({} if truncated is None else {"samples_cut_short": truncated}),
    )


def compute(meter: Any, pretrain_macs: int | None, selected: SearchResult | None) -> ComputeCard:
    """Return the MACs of the method itself, of its evaluation, and of the stages that it shares with others."""
    if meter is None:
        uncounted = "not counted: a scikit-learn estimator"
        return ComputeCard(forward_macs=None, backward_macs=None, convention=uncounted)
    return ComputeCard(
        forward_macs=meter.forward,
        backward_macs=meter.backward,
        cached_macs=meter.saved,
        probe_macs=meter.probe_macs,
        upstream_macs=pretrain_macs,
        **({} if selected is None else {"search_macs": selected.state.macs}),
        convention="multiply-accumulates of every pass of the network; backward counted where it happened; "
        "cached are forward passes of frozen layers that were skipped because their features were cached; "
        "probes, the shared upstream model and the hyper-parameter search are not part of forward and backward",
    )


def _selection(fits: list[JsonObject], selected: SearchResult | None, validation: str) -> JsonObject:
    """Return the settings that were tried and selected: by the method while it trained, or in a search before."""
    if selected is None:
        return {"trials": len(fits), "chosen": [_chosen(fit) for fit in fits if fit["picked"]]}
    return {
        "selection": selected.describe(validation),
        "rule": selected.space.rule,
        "trials": selected.state.runs,
        "skipped_runs": selected.skipped,
        "chosen": [selected.selected],
        **selected.choice,
        "tried": selected.candidates,
    }


def _chosen(fit: JsonObject) -> JsonObject:
    """Return the settings of a selected fit, without those that are 0."""
    shown = (
        "train",
        "objective",
        "layers",
        "lr",
        "weight_decay",
        "dropout",
        "strength",
        "top",
        "epoch",
        "epochs",
        "score",
    )
    return {name: fit[name] for name in shown if fit[name] != 0 or name == "epoch"}


def rescored(card: Card) -> Card:
    """Return the card of a run whose scores are computed again from its record by the code as it is now."""
    benchmark = registry.get("benchmark", card.run.benchmark)()
    metrics = _metrics(benchmark, benchmark.options(**card.run.options), card.protocol)
    code = card.code.model_copy(update={"score_revisions": score_revisions(card.run.benchmark, metrics)})
    return card.model_copy(update={"metrics": metrics, "code": code})


def _metrics(benchmark: Benchmark, options: object, protocol: JsonObject) -> JsonObject:
    return {
        name: {"formula": registry.get("metric", name).formula, **settings}
        for name, settings in benchmark.metrics(options, protocol).items()
    }
