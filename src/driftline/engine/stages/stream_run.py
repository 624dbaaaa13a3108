"""Runs: one method over one stream, checkpointed on the way."""

from __future__ import annotations

import platform
import shutil
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from driftline import registry
from driftline.engine.stages import card
from driftline.engine.stages.active_run import FINAL, ActiveRun
from driftline.engine.stages.base import Stage, StageContext, Workload, cost_text
from driftline.engine.stages.scoring import write_scores
from driftline.engine.stages.search_round import required_candidates
from driftline.io import serialization
from driftline.io.checksums import read_checked, write_checked
from driftline.record.card import CARD
from driftline.record.run import RUNTIME, Run
from driftline.revisions import changed_scores
from driftline.spec.keys import run_key
from driftline.spec.methods import method_facts
from driftline.store.store import Store


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
        named |= {"lora"} if self.job.lora else set()
        parts = self.job.model_dump(mode="json", include=named)
        free_options = registry.get("benchmark", self.job.benchmark).options.cost_free
        options = {name: value for name, value in self.job.options.items() if name not in free_options}
        candidate = self.job.search.candidates[0] if self.job.search else {}
        settings = {**self.job.method.settings, **candidate}
        cost_free = method_facts(self.job.method.name).cost_free
        free = [name for name in settings if name in cost_free and isinstance(settings[name], int | float)]
        settings = {name: value for name, value in settings.items() if name not in free}
        return cost_text("run", parts, options, self.job.method.name, settings)

    def cost_title(self, workload: Workload) -> str:
        return "probes and score"

    def is_done(self, store: Store) -> bool:
        recorded = store.index.score_revisions(self.key)
        return recorded is not None and not changed_scores(recorded)

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
        run = ActiveRun.build(self, context)
        try:
            start = run.checkpoint.resume()
        except Exception:  # a damaged or outdated checkpoint is useless, and parts of it may have been restored
            shutil.rmtree(run.folder)
            run = ActiveRun.build(self, context)
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
