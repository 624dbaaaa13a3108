"""The interface of executors, their events and errors, and how an attempt at a stage ends."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from driftline.engine.executors.process import out_of_memory
from driftline.engine.stages import Pretrain, Stage, StageContext
from driftline.engine.stages.search_round import NO_MEMORY
from driftline.errors import DiskError, InputsChanged, UserError
from driftline.store.store import Store
from driftline.types import OnProgress

MICRO_BATCH = 16
"""Proposed for a network whose batch does not fit into memory."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a stage."""

    kind: Literal["reused", "started", "advanced", "retried", "finished", "failed", "skipped"]
    stage: Stage
    done: int = 0
    total: int = 0
    reason: str = ""


OnEvent = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """Show nothing."""


@dataclass
class RunSummary:
    """The stages of a plan by how they ended."""

    computed: list[Stage] = field(default_factory=list)
    reused: list[Stage] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons by key."""
    retried: dict[str, list[str]] = field(default_factory=dict)
    """Why stages were tried again, by key."""
    failed_candidates: dict[str, str] = field(default_factory=dict)
    """Search runs that failed, with the reason; the search goes on without their candidates."""
    skipped: list[Stage] = field(default_factory=list)
    """Search runs that were not needed to find the winner."""


class StageFailed(Exception):
    """A stage did not produce its result; the reason is a sentence."""


class Interrupted(Exception):
    """A stage was stopped; it has not failed, and will be resumed."""


class WorkerLost(Exception):
    """The worker of a stage is gone, and the stage may be tried again; the reason is a sentence."""


class Executor(Protocol):
    """A place where stages are computed, one at a time."""

    retries: int
    """Number of retries of a stage whose worker was lost."""
    in_process: bool
    """Whether stages are computed in the calling thread, so that Ctrl-C reaches them."""

    @property
    def broken(self) -> Exception | None:
        """The reason why no further stage can be computed here; None if there is no such reason."""

    def submit(self, stage: Stage, on_progress: OnProgress) -> bool:
        """Compute a stage; return, once the result is in the store, whether it had to be computed.

        Raise StageFailed if there will be no result, WorkerLost if another attempt may succeed.
        """


def run_stage(stage: Stage, context: StageContext) -> bool:
    """Run a stage; return whether it was computed. If it fails, record why and raise StageFailed."""
    store = context.store
    try:
        computed = stage.run(context)
        store.clear_failure(stage.key)
        return computed
    except DiskError:
        raise  # the reason could not be written either
    except Exception as error:
        if out_of_memory(error):
            reason = _memory_reason(stage, error)
        else:
            reason = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        record_failure(stage, store, reason, "" if isinstance(error, InputsChanged) else traceback.format_exc())
        raise StageFailed(reason) from error


def _memory_reason(stage: Stage, error: Exception) -> str:
    """Return what was too large and the settings to change; torch's own advice is in the traceback."""
    detail = ". ".join(str(error).split(". ")[:2]).rstrip(".")
    settings = f"{_smaller_batch(stage)}, --set device.checkpoint_activations=true, --precision bfloat16"
    return f"{NO_MEMORY[0]}: {detail}. Use {settings} or a smaller network"


def _smaller_batch(stage: Stage) -> str:
    """Return the setting that halves the samples in memory; methods that train on labels can accumulate gradients."""
    job = stage.job
    batch = job.options.get("batch")
    if batch is not None and not isinstance(stage, Pretrain):
        return f"--set {job.benchmark}.batch={max(batch // 2, 1)}"
    half = job.device.micro_batch // 2 if job.device.micro_batch else MICRO_BATCH
    return f"--set device.micro_batch={max(half, 1)}"


def record_failure(stage: Stage, store: Store, reason: str, details: str = "") -> None:
    """Record why a stage failed; `details`: a traceback or the end of its log."""
    store.fail(stage.key, stage.job.model_dump(mode="json"), reason, details)
