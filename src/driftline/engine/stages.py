"""The stages of a run: what is computed once, by whom it is needed, and how it survives a crash."""

from __future__ import annotations

import json
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from driftline import data, loop, models, registry, state
from driftline.benchmarks.base import Layout
from driftline.checksums import write_checked
from driftline.data import Dataset
from driftline.engine import card, contests, fits, rounds
from driftline.engine.checkpoint import Checkpoint
from driftline.errors import Changed
from driftline.jobs import Choice, Job, filled, learner_class
from driftline.learners.base import Learner
from driftline.learners.trained import Trained
from driftline.record import RUNTIME, FileRecorder, Run, seal
from driftline.reveal import Revealing
from driftline.rows import write_rows
from driftline.seeds import Seed
from driftline.store import Store
from driftline.training.model import as_model
from driftline.types import Probe, Step

if TYPE_CHECKING:
    from driftline.training.meter import Meter

Report = Callable[[int, int], None]
"""Told how many of how many steps are done."""


@dataclass(frozen=True)
class Stage:
    """A piece of work whose result is kept under the hash of all it depends on."""

    key: str
    kind: Literal["upstream", "fit", "trial", "round", "deploy"]
    job: dict[str, Any]
    needs: tuple[str, ...] = ()
    trial: str = ""
    """Of a fit: the key of its trial in the method's plan."""
    title: str = ""
    despite: tuple[str, ...] = ()
    """Those of its needs that may fail: of a round its trials, of a trial the rounds that may call for it."""

    @property
    def name(self) -> str:
        if self.kind == "round":
            return self.title
        what = {"fit": self.title, "upstream": "upstream"}.get(self.kind, self.job["label"])
        return f"{what} seed {self.job['seed']}"

    @property
    def is_run(self) -> bool:
        """Whether it leaves a record."""
        return self.kind in ("trial", "deploy")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Stage:
        content = json.loads(text)
        return Stage(**{**content, **{name: tuple(content[name]) for name in ("needs", "despite")}})

    def done(self, store: Store) -> bool:
        """Whether its result is in the store, undamaged."""
        return store.intact(self.key) if self.is_run else state.readable(store.stage_path(self.key))


def perform(stage: Stage, store: Store, where: Path | None, report: Report = lambda done, of: None) -> bool:
    """Compute a stage unless its result is there; two processes never compute the same one at once.

    Whether it had to be computed.
    """
    with store.lock(stage.key):
        if stage.done(store):
            store.forget_workings(stage.key)  # whoever finished it may have died before doing so
            return False
        report(0, 0)  # it has begun, and nothing is known of its steps yet
        if stage.kind == "round":
            rounds.judge(stage, store)
            return True
        job = Job.model_validate(stage.job)
        _must_be_planned(job, stage, where)
        how = {"upstream": train_upstream, "fit": fit, "trial": deploy, "deploy": deploy}[stage.kind]
        how(job, stage, store, where, report)
        return True


lent: dict[tuple[str, str], Dataset] = {}
"""Datasets that came with the work, by name and settings, on a machine that need not have their files."""


@lru_cache(maxsize=2)
def dataset_of(name: str, settings: str, where: Path | None) -> Dataset:
    """A dataset, read once per process."""
    return lent.get((name, settings)) or data.load(name, json.loads(settings), data.folders(where))


def dataset_for(job: Job, where: Path | None) -> Dataset:
    """The data of a job."""
    return dataset_of(job.data.name, json.dumps(job.data.settings, sort_keys=True), where)


def materials(job: Job, where: Path | None) -> tuple[Dataset, Layout]:
    """The data of a job, laid out in time."""
    dataset = dataset_for(job, where)
    benchmark = registry.get("benchmark", job.benchmark)()
    return dataset, benchmark.lay_out(dataset, benchmark.options(**job.options), Seed(job.seed))


def _must_be_planned(job: Job, stage: Stage, where: Path | None) -> None:
    """A key names the data's content; if that changed since planning, the result would stand under a false name."""
    fingerprint = dataset_for(job, where).fingerprint
    privileged = learner_class(job.method.name).privileged
    now = {
        "trial": lambda: job.key(fingerprint),
        "deploy": lambda: job.key(fingerprint),
        "fit": lambda: job.trial_key(fingerprint, stage.trial, privileged),
        "upstream": lambda: job.upstream_key(fingerprint),
    }
    if stage.key != now[stage.kind]():
        raise Changed(f"the data or the files behind '{job.label}' changed while it was waiting: run it again")


def new_model(job: Job, dataset: Dataset) -> Any:
    """The model as initialised for this job's seed."""
    shape = tuple(getattr(dataset.samples.x, "shape", (0,))[1:])  # a text has none
    seed, given = Seed(job.seed).child("init"), dict(job.model.settings)
    if models.takes_said(job.model.name) and dataset.said is not None:
        given["said"] = (dataset.samples.x, dataset.said)
    return models.build(job.model.name, shape, dataset.task.width, seed, **given)


def train_upstream(job: Job, stage: Stage, store: Store, where: Path | None, report: Report) -> None:
    """Train the model that all methods of this seed with the same pretraining start from."""
    started = time.perf_counter()
    dataset, layout = materials(job, where)
    model = new_model(job, dataset)
    meter = metered(model)
    assert layout.upstream is not None
    if not as_model(model).is_network:
        model.fit(layout.upstream.x, dataset.task.targets(layout.upstream.y))
    else:
        teacher = teacher_of(job, layout)
        teacher.seed = Seed(job.seed).child("upstream")
        teacher.prepare(model, dataset.task)
        teacher.train(layout.upstream.x, layout.upstream.y)
    macs = meter.forward + meter.backward if meter else None
    seconds = time.perf_counter() - started
    state.save({"model": state.capture(model), "macs": macs, "seconds": seconds}, store.stage_path(stage.key))


def teacher_of(job: Job, layout: Layout) -> Trained:
    """Who trains the model on upstream samples: the benchmark's settings, and those that the method asks for."""
    said = Choice(name=job.pretraining.name, settings={**layout.schooling, **job.pretraining.settings})
    made: Trained = registry.get("pretraining", said.name)(**filled("pretraining", said).settings)
    return made


def fit(job: Job, stage: Stage, store: Store, where: Path | None, report: Report) -> None:
    """Carry out one trial of a method's plan; every method that plans the same one finds it done."""
    started = time.perf_counter()
    dataset, layout = materials(job, where)
    learner, meter, _ = prepared(job, None, store, dataset, layout)
    assert meter is not None
    learner.look_up(fits.recall(job, dataset.fingerprint, store, learner.privileged, None))
    outcome = learner.compute_fit(stage.trial, fits.lessons(learner, job, dataset, layout), report)
    cost = {"macs": (meter.forward, meter.backward), "seconds": time.perf_counter() - started}
    state.save({**outcome, **cost}, store.stage_path(stage.key))


def deploy(job: Job, stage: Stage, store: Store, where: Path | None, report: Report) -> None:
    """Take one method through the stream, checkpointing on the way, and keep what happened."""
    started = time.monotonic()
    dataset, layout = materials(job, where)
    planned, (job, verdict) = job, contests.settle(job, stage.needs, store)
    upstream = stage.needs[0] if layout.upstream is not None else None
    learner, meter, upstream_macs = prepared(job, upstream, store, dataset, layout)
    stream = fits.stream_for(learner, layout)
    learner.look_up(fits.recall(job, dataset.fingerprint, store, learner.privileged, meter))
    work, final = store.work_folder(stage.key), store.work_folder(stage.key) / "final"
    recorder = FileRecorder(dataset.task, work, lambda: (meter.forward, meter.backward) if meter else (None, None))
    benchmark = registry.get("benchmark", job.benchmark)()
    reveal = Revealing(dataset.task, benchmark.reveals, Seed(job.seed), **job.reveal.model_dump())
    parts = {"learner": learner, "reveal": reveal, "recorder": recorder, **({"meter": meter} if meter else {})}
    checkpoint = Checkpoint(work / "checkpoint.safetensors", parts)
    try:
        start = checkpoint.resume()
    except Exception:  # half a checkpoint, or another version's, is worth nothing, and it may have been half restored
        shutil.rmtree(work)
        return deploy(planned, stage, store, where, report)
    report(start, len(stream))

    def after_step(done: int) -> None:
        report(done, len(stream))
        if done < len(stream):
            checkpoint.save_if_due(done)

    probes = layout.delayed_probes(job.reveal.delay) if layout.delayed_probes else layout.probes
    probes = Unmetered(probes, meter) if meter else probes
    entrance = unmetered(layout.entrance, meter) if meter else layout.entrance
    loop.run(stream, learner, reveal, probes, recorder, entrance=entrance, start=start, after_step=after_step)
    shutil.rmtree(final, ignore_errors=True)  # what an earlier attempt may have left half-made
    recorder.finish(final)
    cost = card.compute(meter, upstream_macs, verdict)
    described = _describe(final, planned, stage, dataset, layout, learner, cost, verdict)
    seal(final, described)
    write_rows(final / "scores.parquet", [pa.Table.from_pandas(benchmark.score(Run(final)), preserve_index=False)])
    seal(final, described)  # again, with the scores that were made from what it says
    circumstances = {"seconds": time.monotonic() - started, "machine": platform.machine()}
    write_checked(final / RUNTIME, {**circumstances, "finished": datetime.now(UTC).isoformat()})
    store.commit(stage.key, final)


def _describe(
    final: Path,
    job: Job,
    stage: Stage,
    dataset: Dataset,
    layout: Layout,
    learner: Learner,
    compute: dict[str, Any],
    verdict: contests.Verdict | None,
) -> dict[str, Any]:
    """Write what a run leaves beside its answers: features to picture and the trials behind its model; its card."""
    write_rows(final / "features.parquet", features(learner.model, layout))
    trials = learner.account()
    if trials:
        write_rows(final / "trials.parquet", [pa.Table.from_pylist(trials)])
    cut = as_model(learner.model).truncated(dataset.samples.x)
    return card.make(job, stage.key, dataset, layout, compute, trials, verdict, cut)


def prepared(
    job: Job, upstream_key: str | None, store: Store, dataset: Dataset, layout: Layout
) -> tuple[Learner, Meter | None, int | None]:
    """The learner with its model, the meter that counts the model's passes, and what the upstream model cost."""
    model, macs = new_model(job, dataset), None
    if upstream_key is not None:
        upstream = state.load(store.stage_path(upstream_key))
        macs = upstream["macs"]
        as_model(model).restore(upstream["model"])
    meter = metered(model)
    learner: Learner = registry.get("method", job.method.name)(**job.method.settings)
    learner.seed, learner.waits = Seed(job.seed).child("learner"), layout.waits
    if layout.selection is not None:
        learner.choose_by(layout.selection)
    learner.prepare(model, dataset.task, layout.upstream)
    return learner, meter, macs


def metered(model: Any) -> Meter | None:
    """A meter on a network; an estimator has no passes to count."""
    if not as_model(model).is_network:
        return None
    from driftline.training.meter import Meter

    meter = Meter()
    meter.attach(model)
    return meter


def unmetered(probes: Iterable[Probe], meter: Meter) -> Iterator[Probe]:
    """Examinations that are not put on the learner's bill: it answers while the next probe is waited for."""
    for probe in probes:
        meter.examining = True
        yield probe
        meter.examining = False


@dataclass(frozen=True)
class Unmetered:
    """Probes none of which is put on the learner's bill."""

    probes: loop.Probes
    meter: Meter

    def due(self, step: Step | None) -> Iterator[Probe]:
        return unmetered(self.probes.due(step), self.meter)


def features(model: Any, layout: Layout) -> Iterator[pa.Table]:
    """How the finished network sees the samples that are to be pictured."""
    for time_, samples in layout.pictured.items():
        seen = as_model(model).features(samples.x)
        if seen is None:
            return
        n = len(samples)
        columns = {"time": pa.repeat(time_, n), "id": pa.array(samples.id), "truth": pa.array(samples.y)}
        yield pa.table({**columns, "features": pa.array(list(seen))})
