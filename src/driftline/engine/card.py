"""The protocol card: all that a reader needs to know why a number is what it is."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from driftline import registry
from driftline.benchmarks.base import Benchmark, Layout
from driftline.data import Dataset
from driftline.engine.contests import Verdict
from driftline.jobs import Job, learner_class
from driftline.record import TABLES
from driftline.version import __version__

PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "torch")


def make(
    job: Job,
    key: str,
    dataset: Dataset,
    layout: Layout,
    compute: dict[str, Any],
    trials: list[dict[str, Any]],
    verdict: Verdict | None = None,
    cut: int | None = None,
) -> dict[str, Any]:
    """The card of a finished run; it holds nothing that may differ between two runs of the same job.

    `cut`: how many samples are longer than the model reads, if it says so.
    """
    benchmark = registry.get("benchmark", job.benchmark)()
    options = benchmark.options(**job.options)
    protocol = _protocol(job, benchmark, layout, _selection(job, trials, verdict))
    return {
        "key": key,
        "label": job.label,
        "role": learner_class(job.method.name).role,
        "run": job.model_dump(mode="json", exclude={"label"}),
        "question": benchmark.question,
        "paper": benchmark.paper,
        "departures": list(benchmark.departures),
        "protocol": protocol,
        "metrics": _metrics(benchmark, options, protocol),
        "data": _data(dataset, cut),
        "compute": compute,
        "user_files": job.files(),
        "code": {"driftline": __version__, "sources": sources_hash()},
        "versions": {"python": platform.python_version(), **installed()},
        "tables": list(TABLES),
    }


def _protocol(job: Job, benchmark: Benchmark, layout: Layout, selection: dict[str, Any]) -> dict[str, Any]:
    """Return what a reader must know about the stream, the labels that were shown and how settings were chosen."""
    return {
        "selection": "none: fixed hyper-parameters",
        **layout.protocol,
        **selection,
        "revealed": benchmark.reveals.name.lower(),
        "label_delay_steps": job.reveal.delay,
        "labels_per_step": job.reveal.budget or "all",
        "labels_missing": job.reveal.missing,
        "least_the_method_needs": learner_class(job.method.name).needs(job.method.settings).name.lower(),
        "reset_policy": "none",
        "normalisation": "inside the model; estimated from its own training data",
        "seeds": f"named children of {job.seed}: split or sequence, init, learner, budget, bootstrap",
        "threads": 1,
    }


def _data(dataset: Dataset, cut: int | None) -> dict[str, Any]:
    task = repr(dataset.task)
    return {
        "name": dataset.name,
        "fingerprint": dataset.fingerprint,
        "samples": len(dataset.samples),
        **({} if cut is None else {"samples_cut_short": cut}),
        "kind": type(dataset.task).__name__,
        "task": task if len(task) < 200 else task[:200] + "...",
        "notes": list(dataset.notes),
    }


def compute(meter: Any, upstream_macs: int | None, verdict: Verdict | None = None) -> dict[str, Any]:
    """What the run cost: the method's own passes, what examining it took, and the stages it shares with others."""
    if meter is None:
        return {"forward_macs": None, "backward_macs": None, "convention": "not counted: a scikit-learn estimator"}
    return {
        "forward_macs": meter.forward,
        "backward_macs": meter.backward,
        "spared_macs": meter.spared,
        "examination_macs": meter.examinations,
        "upstream_macs": upstream_macs,
        **({} if verdict is None else {"selection_macs": verdict.standing.macs}),
        "convention": "multiply-accumulates of every pass of the network; backward counted where it happened; "
        "spared are forward passes of frozen layers over inputs whose features were kept; "
        "examinations, the shared upstream model and the choice of settings are not part of forward and backward",
    }


def _selection(job: Job, trials: list[dict[str, Any]], verdict: Verdict | None) -> dict[str, Any]:
    """What was tried and chosen: by the method itself while it trained, or in a contest before it was run."""
    if verdict is None or job.contest is None:
        return {"trials": len(trials), "chosen": [_chosen(trial) for trial in trials if trial["picked"]]}
    return {
        "selection": verdict.said(),
        "rule": job.contest.rule,
        "trials": verdict.standing.trials,
        "spared_trials": verdict.spared,
        "chosen": [verdict.chosen],
        "tried": verdict.tried,
    }


def _chosen(trial: dict[str, Any]) -> dict[str, Any]:
    """The settings of a trial that won, as far as they say something."""
    shown = ("train", "objective", "layers", "lr", "weight_decay", "dropout", "strength", "top", "epoch", "score")
    return {name: trial[name] for name in shown if trial[name] != 0 or name == "epoch"}


@cache
def sources_hash() -> str:
    """A hash of this package's own source files."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def installed() -> dict[str, str]:
    """Versions of the packages that numbers depend on."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _metrics(benchmark: Benchmark, options: Any, protocol: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"formula": registry.get("metric", name).formula, **settings}
        for name, settings in benchmark.metrics(options, protocol).items()
    }
