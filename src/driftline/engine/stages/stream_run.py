"""Runs: one method over one stream, checkpointed on the way."""

from __future__ import annotations

import platform
import shutil
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from driftline import loop, registry
from driftline.benchmarks.base import Scenario
from driftline.data import Dataset
from driftline.engine.build import build_learner, build_model, build_scenario, load_pretrained, stream_for
from driftline.engine.stages import card
from driftline.engine.stages.base import Stage, StageContext, Workload, cost_text
from driftline.engine.stages.budget import set_allowance, with_allowance
from driftline.engine.stages.checkpoint import Checkpoint
from driftline.engine.stages.features import features
from driftline.engine.stages.fit import recall
from driftline.engine.stages.metering import UncountedProbes, counts, metered, uncounted
from driftline.engine.stages.sampling import sampled_steps, without_prefetching
from driftline.engine.stages.search_round import SearchResult, required_candidates, resolve_settings
from driftline.io import serialization
from driftline.io.checksums import read_checked, write_checked
from driftline.learners.base import Learner
from driftline.record.card import CARD, Card, write_card
from driftline.record.parquet import write_rows
from driftline.record.recorder import FileRecorder
from driftline.record.run import RUNTIME, Run
from driftline.reveal import RevealPolicy
from driftline.revisions import changed
from driftline.seeds import Seed
from driftline.spec.job import Job
from driftline.spec.keys import run_key
from driftline.spec.settings import learner_class
from driftline.store.store import Store
from driftline.streams.prefetch import Prefetched
from driftline.training import profiling
from driftline.training.model import as_model
from driftline.types import OnProgress, Stream

FINAL = "final"

if TYPE_CHECKING:
    from driftline.models.weights import LoadedWeights
    from driftline.training.mac_counter import MacCounter


@dataclass(frozen=True)
class StreamRun(Stage):
    """Run a method over the stream and record what happens."""

    pretrained: str | None = None
    """The key of the pretrained model, if there is one."""
    fits: tuple[str, ...] = ()
    """Keys of the fits that the method plans."""
    search: str | None = None
    """The key of the last round of the hyper-parameter search, if there is one."""
    calibration: str | None = None
    """The key of the calibration that the stream is made from, if there is one."""

    kind: ClassVar[str] = "run"
    is_result: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return f"{self.job.label} seed {self.job.seed}"

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(key for key in (self.pretrained, *self.fits, self.search, self.calibration) if key is not None)

    def current_key(self, fingerprint: str) -> str:
        return run_key(self.job, fingerprint)

    def cost_key(self, workload: Workload) -> str:
        named = {"benchmark", "data", "model", "reveal", *(["budget_macs"] if self.job.budget_macs else [])}
        parts = self.job.model_dump(mode="json", include=named)
        free_options = registry.get("benchmark", self.job.benchmark).options.cost_free
        options = {name: value for name, value in self.job.options.items() if name not in free_options}
        candidate = self.job.search.candidates[0] if self.job.search else {}
        settings = {**self.job.method.settings, **candidate}
        cost_free = serialization.declared(learner_class(self.job.method.name), "cost_free")
        free = [name for name in settings if name in cost_free and isinstance(settings[name], int | float)]
        settings = {name: value for name, value in settings.items() if name not in free}
        return cost_text("run", parts, options, self.job.method.name, settings)

    def cost_title(self, workload: Workload) -> str:
        return "probes and score"

    def is_done(self, store: Store) -> bool:
        recorded = store.verified.score_revisions(self.key)
        return recorded is not None and not changed(recorded)

    def is_local(self, store: Store) -> bool:
        return store.intact(self.key)  # only its scores are to be computed again

    @property
    def result_name(self) -> str:
        return f"runs/{self.key}"

    def result_files(self, store: Store) -> dict[str, Path]:
        return {path.name: path for path in sorted(store.run_folder(self.key).iterdir())}

    def commit(self, folder: Path, store: Store, node: str) -> None:
        path = folder / RUNTIME
        write_checked(path, {**read_checked(path), "node": node})
        store.commit(self.key, folder)

    def recorded_cost(self, store: Store) -> tuple[float, int]:
        folder = store.run_folder(self.key)
        compute, runtime = read_checked(folder / CARD)["compute"], read_checked(folder / RUNTIME)
        macs = sum(compute.get(name) or 0 for name in ("forward_macs", "backward_macs", "probe_macs"))
        return runtime["seconds"], max(macs - sum(self.included_macs(store)), 0)

    def included_macs(self, store: Store) -> tuple[int, int]:
        paths = (store.stage_path(key) for key in self.fits)
        pairs = [serialization.load_metadata(path)["macs"] for path in paths if path.exists()]
        return sum(forward for forward, _ in pairs), sum(backward for _, backward in pairs)

    def as_profiled(self, fingerprint: str) -> Stage:
        """Return the run with the first candidate's settings, if they are not selected yet.

        Its stream is the one of planning, which costs the same: a profiled calibration is none.
        """
        if self.job.search is None:
            return replace(self, calibration=None)
        job = self.job.with_settings(self.job.search.candidates[0]).model_copy(update={"search": None})
        return replace(self, key=run_key(job, fingerprint), job=job, calibration=None)

    def compute(self, context: StageContext) -> None:
        if context.store.intact(self.key):
            return self._rescore(context.store)
        started = time.monotonic()
        run = _Run.build(self, context)
        try:
            start = run.checkpoint.resume()
        except Exception:  # a damaged or outdated checkpoint is useless, and parts of it may have been restored
            shutil.rmtree(run.folder)
            run = _Run.build(self, context)
            start = run.checkpoint.resume()
        try:
            run.follow_stream(start, context.on_progress)
        finally:
            waited = run.close_stream(time.monotonic() - started)
        run.finish()
        write_checked(
            run.final / RUNTIME,
            {
                "seconds": time.monotonic() - started,
                "waited_for_data": waited,
                "machine": platform.machine(),
                "finished": datetime.now(UTC).isoformat(),
            },
        )
        context.store.commit(self.key, run.final)

    def _rescore(self, store: Store) -> None:
        """Compute the scores again from the record of the finished run."""
        folder = store.work_folder(self.key) / FINAL
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(store.run_folder(self.key), folder)
        write_scores(folder, card.rescored(Run(folder).card))
        store.commit(self.key, folder)


def write_scores(folder: Path, description: Card) -> None:
    """Score a record, and write its scores and its card."""
    write_card(folder, description)
    benchmark = registry.get("benchmark", description.run.benchmark)()
    scores = benchmark.score(Run(folder))
    write_rows(folder / "scores.parquet", [pa.Table.from_pandas(scores, preserve_index=False)])
    write_card(folder, description)  # again, with the scores that were computed from the rest


@dataclass(frozen=True)
class SearchRun(StreamRun):
    """Run a candidate of a hyper-parameter search."""

    rounds: tuple[str, ...] = ()
    """Keys of the rounds that may require the run; without any, it is always required."""

    kind: ClassVar[str] = "search-run"
    is_result: ClassVar[bool] = False
    may_fail: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[str, ...]:
        return (*super().needs, *self.rounds)

    @property
    def optional_needs(self) -> tuple[str, ...]:
        return self.rounds

    def cost_title(self, workload: Workload) -> str:
        return "search"

    def is_required(self, store: Store) -> bool:
        """Whether a round still considers the run's candidate."""
        settings = self.job.method.settings
        candidates = required_candidates(self.rounds, store)
        return not self.rounds or any(candidate.items() <= settings.items() for candidate in candidates)


@dataclass(frozen=True)
class _Run:
    """The parts of a run in progress."""

    stage: StreamRun
    job: Job
    """The stage's job with the selected settings."""
    selected: SearchResult | None
    dataset: Dataset
    scenario: Scenario
    stream: Stream
    learner: Learner
    meter: MacCounter | None
    weights: LoadedWeights | None
    pretrain_macs: int | None
    folder: Path
    recorder: FileRecorder
    reveal: RevealPolicy
    checkpoint: Checkpoint

    @classmethod
    def build(cls, stage: StreamRun, context: StageContext) -> _Run:
        """Build everything that the run needs."""
        store = context.store
        assert stage.calibration or profiling.is_active() or stage.job.calibration_job() is None
        calibration = store.stage_path(stage.calibration) if stage.calibration else None
        dataset, scenario = build_scenario(stage.job, context.datasets, calibration)
        job, selected = resolve_settings(stage.job, stage.search, store)
        model, macs = build_model(job, dataset), None
        if stage.pretrained is not None:
            macs = load_pretrained(model, store.stage_path(stage.pretrained))
        meter = metered(model)
        learner = build_learner(job, model, dataset, scenario)
        learner.set_fit_lookup(recall(job, dataset.fingerprint, store, meter))
        folder = store.work_folder(stage.key)
        recorder = FileRecorder(dataset.task, folder, lambda: counts(meter))
        level = registry.get("benchmark", job.benchmark).reveals
        reveal = RevealPolicy(dataset.task, level, Seed(job.seed), **job.reveal.model_dump())
        parts = {"learner": learner, "reveal": reveal, "recorder": recorder, **({"meter": meter} if meter else {})}
        return cls(
            stage=stage,
            job=job,
            selected=selected,
            dataset=dataset,
            scenario=scenario,
            stream=without_prefetching(stream_for(job, scenario)),
            learner=learner,
            meter=meter,
            weights=as_model(model).loaded_weights,
            pretrain_macs=macs,
            folder=folder,
            recorder=recorder,
            reveal=reveal,
            checkpoint=Checkpoint(folder / "checkpoint.safetensors", parts, dataset.samples.x),
        )

    @property
    def final(self) -> Path:
        """The folder in which the result is put together."""
        return self.folder / FINAL

    def follow_stream(self, start: int, on_progress: OnProgress) -> None:
        """Run the learner on the stream from step `start` on."""
        total, scenario, budget = len(self.stream), self.scenario, self.job.budget_macs
        on_progress(start, total)
        set_allowance(self.meter, budget, start, total)

        def on_step(done: int) -> None:
            set_allowance(self.meter, budget, done, total)
            on_progress(done, total)
            if done < total:
                self.checkpoint.save_if_due(done)

        probes = scenario.delayed_probes(self.job.reveal.delay) if scenario.delayed_probes else scenario.probes
        probes = UncountedProbes(probes, self.meter) if self.meter else probes
        initial = scenario.initial_probes if start == 0 else ()
        loop.run(
            self.stream,
            with_allowance(self.learner, self.meter, budget),
            self.reveal,
            probes,
            self.recorder,
            initial_probes=uncounted(initial, self.meter) if self.meter else initial,
            start=start,
            indices=sampled_steps(self.stream, start),
            on_step=on_step,
        )

    def close_stream(self, seconds: float) -> float:
        """Stop making steps ahead; return how many of these seconds the learner waited for one."""
        if not isinstance(self.stream, Prefetched):
            return 0.0
        self.stream.close()
        self.stream.report_waiting(seconds)
        return self.stream.waited

    def finish(self) -> None:
        """Write the tables, the card and the scores."""
        final = self.final
        shutil.rmtree(final, ignore_errors=True)  # what an earlier attempt may have left unfinished
        self.recorder.finish(final)
        write_scores(final, self._describe())

    def _describe(self) -> Card:
        """Write features and fits, and return the card."""
        learner, final = self.learner, self.final
        compute = card.compute(self.meter, self.pretrain_macs, self.selected)  # before features are computed
        write_rows(final / "features.parquet", features(learner.model, self.scenario))
        trials = learner.fit_table()
        if trials:
            write_rows(final / "trials.parquet", [pa.Table.from_pylist(trials)])
        return card.build(
            job=self.stage.job,
            key=self.stage.key,
            dataset=self.dataset,
            scenario=self.scenario,
            compute=compute,
            trials=trials,
            selected=self.selected,
            truncated=as_model(learner.model).truncated(self.dataset.samples.x),
            weights=self.weights,
        )
