"""A run in progress: its learner, stream, recorder and checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from driftline import loop
from driftline.benchmarks.base import Scenario
from driftline.data import Dataset
from driftline.engine.build import (
    build_learner,
    build_model,
    build_reveal,
    build_scenario,
    load_pretrained,
    stream_for,
)
from driftline.engine.stages import card
from driftline.engine.stages.base import Profiler, StageContext
from driftline.engine.stages.checkpoint import Checkpoint
from driftline.engine.stages.compute_budget import set_allowance, with_allowance
from driftline.engine.stages.fit import recall
from driftline.engine.stages.metering import UncountedProbes, counts, metered, uncounted
from driftline.engine.stages.scoring import write_scores
from driftline.engine.stages.search_round import SearchResult, resolve_settings
from driftline.learners.base import Learner
from driftline.learners.periodic_reset import Snapshot
from driftline.record.card import Card
from driftline.record.parquet import write_rows
from driftline.record.recorder import FileRecorder
from driftline.reveal import RevealPolicy
from driftline.spec.job import Job
from driftline.streams.prefetch import Prefetched
from driftline.training.model import as_model
from driftline.types import Network, OnProgress, Stream

FINAL = "final"
FEW, MANY = 12, 1000
"""Streams of up to FEW steps are profiled in full, because the plan of a method depends on their number; where samples
come one by one, up to MANY, because the cost of training depends on how many labels came before."""

if TYPE_CHECKING:
    from driftline.engine.stages.stream_run import StreamRun
    from driftline.models.weights import LoadedWeights
    from driftline.training.mac_counter import MacCounter


@dataclass(frozen=True)
class ActiveRun:
    """The parts of a run in progress."""

    stage: StreamRun
    job: Job
    """The stage's job with the selected settings."""
    selected: SearchResult | None
    dataset: Dataset
    scenario: Scenario
    stream: Stream
    learner: Learner
    initial: Snapshot | None
    """The learner before its first step, if it returns to it on the way."""
    meter: MacCounter | None
    weights: LoadedWeights | None
    pretrain_macs: int | None
    folder: Path
    recorder: FileRecorder
    reveal: RevealPolicy
    profiler: Profiler | None
    checkpoint: Checkpoint

    @classmethod
    def build(cls, stage: StreamRun, context: StageContext) -> ActiveRun:
        """Build everything that the run needs."""
        store = context.store
        assert stage.calibration or context.profiler or stage.job.calibration_job() is None
        calibration = store.stage_path(stage.calibration) if stage.calibration else None
        dataset, scenario = build_scenario(stage.job, context.datasets, calibration)
        job, selected = resolve_settings(stage.job, stage.search, store)
        model, macs = build_model(job, dataset), None
        if stage.pretrained is not None:
            macs = load_pretrained(model, store.stage_path(stage.pretrained))
        meter = metered(model, context.profiler)
        learner = build_learner(job, model, dataset, scenario)
        learner.set_fit_lookup(recall(job, dataset.fingerprint, store, meter))
        folder = store.work_folder(stage.key)
        recorder = FileRecorder(dataset.task, folder, lambda: counts(meter))
        reveal = build_reveal(job, dataset.task)
        stream = stream_for(job, scenario)
        stream = stream if context.profiler is None else without_prefetching(stream)
        parts = {"learner": learner, "reveal": reveal, "recorder": recorder, **({"meter": meter} if meter else {})}
        return cls(
            stage=stage,
            job=job,
            selected=selected,
            dataset=dataset,
            scenario=scenario,
            stream=stream,
            learner=learner,
            initial=Snapshot(learner) if scenario.restarts else None,
            meter=meter,
            weights=as_model(model).loaded_weights,
            pretrain_macs=macs,
            folder=folder,
            recorder=recorder,
            reveal=reveal,
            profiler=context.profiler,
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
            if self.initial is not None and done in scenario.restarts:
                self.initial.restore_into(self.learner)
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
            indices=None if self.profiler is None else sampled_steps(self.stream, start, self.profiler),
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
        fits = learner.fit_table()
        if fits:
            write_rows(final / "trials.parquet", [pa.Table.from_pylist(fits)])
        return card.build(
            job=self.stage.job,
            key=self.stage.key,
            dataset=self.dataset,
            scenario=self.scenario,
            compute=compute,
            fits=fits,
            selected=self.selected,
            truncated=as_model(learner.model).truncated(self.dataset.samples.x),
            weights=self.weights,
        )


def without_prefetching(stream: Stream) -> Stream:
    """Return a stream whose skipped steps are not computed."""
    return stream.stream if isinstance(stream, Prefetched) else stream


def sampled_steps(stream: Stream, start: int, profiler: Profiler) -> Iterable[int]:
    """Return the steps to run while the stage is profiled."""
    return profiler.sample(range(start, len(stream)), MANY if stream[start].one_by_one else FEW)


def features(model: Network, scenario: Scenario) -> Iterator[pa.Table]:
    """Yield the features that the network computes for the scenario's embedding samples, one table per time."""
    for time, samples in scenario.embedding_samples.items():
        seen = as_model(model).features(samples.x)
        if seen is None:
            return
        n = len(samples)
        columns = {"time": pa.repeat(time, n), "id": pa.array(samples.id), "truth": pa.array(samples.y)}
        yield pa.table({**columns, "features": pa.array(list(seen))})
