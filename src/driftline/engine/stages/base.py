"""The base class of stages: a key, dependencies, a result in the store, and how to compute it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from driftline import device, models
from driftline.engine.build import DatasetCache
from driftline.errors import InputsChanged
from driftline.io import serialization
from driftline.io.atomic import write_bytes
from driftline.io.user_files import use_copies
from driftline.learners.fit_plan import FitSpec
from driftline.spec.job import Job
from driftline.store.store import Store
from driftline.types import OnProgress, State, ignore_progress

if TYPE_CHECKING:
    from driftline.training.mac_counter import MacCounter

T = TypeVar("T")


class Profiler(Protocol):
    """Estimates what a stage costs while a part of it runs."""

    def sample(self, items: Sequence[T], few: int) -> Iterable[T]:
        """Yield some of these items in order; all if there are no more than `few`."""

    def add_counter(self, meter: MacCounter) -> None:
        """Include the passes that this meter counts, but not the time of counting, which only a first pass takes."""


@dataclass(frozen=True)
class StageContext:
    """Everything that a stage needs to be computed in this process."""

    store: Store
    datasets: DatasetCache = field(default_factory=DatasetCache)
    files: Mapping[str, Path] = field(default_factory=dict)
    """Local copies of files that the user named, by that name."""
    on_progress: OnProgress = ignore_progress
    """Called with 0, 0 when the stage begins."""
    profiler: Profiler | None = None
    """What estimates the cost of the stage from a part of it; None: the stage is computed."""


class Workload(Protocol):
    """Sizes that decide how much work a fit is."""

    def fit_spec(self, key: str) -> FitSpec:
        """Return what the fit of this fit key does."""

    def step_sizes(self, job: Job) -> tuple[int, ...]:
        """Return the number of samples in each step of a job's stream."""


@dataclass(frozen=True)
class Stage(ABC):
    """A unit of work whose result is stored under a key that covers everything it depends on.

    Dependencies are keys: a stage needs only their results, and is sent to workers by itself.
    """

    key: str
    job: Job

    kind: ClassVar[str]
    """Names the class in JSON and in the status file."""
    is_result: ClassVar[bool] = False
    """Whether it is a result; other stages are computed only if a result needs them."""
    may_fail: ClassVar[bool] = False
    """Whether the sweep succeeds without it."""
    shareable: ClassVar[bool] = False
    """Whether several runs may need it."""
    profile_weight: ClassVar[int] = 1
    """Its share of the profiling time, relative to other stages."""

    _classes: ClassVar[dict[str, type[Stage]]] = {}

    def __init_subclass__(cls) -> None:
        Stage._classes[cls.kind] = cls

    @property
    def device(self) -> device.DeviceSettings:
        """Where the model runs: networks on the device of the spec, estimators on the host."""
        return device.ON_HOST if models.is_estimator(self.job.model.name) else self.job.device

    @property
    @abstractmethod
    def title(self) -> str:
        """A short name for progress reports."""

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """Keys of the stages that must have ended before this one begins."""

    @property
    def optional_needs(self) -> tuple[str, ...]:
        """Those of its needs that may fail."""
        return ()

    @abstractmethod
    def compute(self, context: StageContext) -> None:
        """Compute the result and write it to the store."""

    @abstractmethod
    def current_key(self, fingerprint: str) -> str:
        """Return the key again, from the files as they are now."""

    @abstractmethod
    def cost_key(self, workload: Workload) -> str | None:
        """Return the same text for stages that cost the same; None if the cost is negligible."""

    @abstractmethod
    def cost_title(self, workload: Workload) -> str:
        """Return the row of a cost table to which the stage belongs."""

    def run(self, context: StageContext) -> bool:
        """Compute the stage unless its result is in the store; return whether it was computed.

        A lock keeps two processes from computing the same stage at once.
        """
        store = context.store
        with store.lock(self.key), use_copies(context.files), device.use(self.device):
            if self.is_done(store):
                store.remove_work_folder(self.key)  # the process that finished it may have died before doing so
                return False
            context.on_progress(0, 0)
            self._check_inputs_unchanged(context)
            self.compute(context)
            return True

    def _check_inputs_unchanged(self, context: StageContext) -> None:
        """Refuse to store a result under a key that names other data or files."""
        if self.key != self.current_key(context.datasets.load(self.job.data).fingerprint):
            raise InputsChanged(
                f"the data or the files behind '{self.job.label}' changed while it was waiting: run it again"
            )

    def is_required(self, store: Store) -> bool:
        """Whether the stage still has to be computed, once its needs have ended."""
        return True

    def is_local(self, store: Store) -> bool:
        """Whether the driver computes it itself, because sending it would take longer."""
        return False

    def is_done(self, store: Store) -> bool:
        """Whether the result is in the store, undamaged and up to date."""
        return serialization.is_complete(store.stage_path(self.key))

    @property
    def result_name(self) -> str:
        """The path of the result within a store."""
        return f"stages/{self.key}.safetensors"

    def result_files(self, store: Store) -> dict[str, Path]:
        """Return the files of the result by name."""
        return {"result": store.stage_path(self.key)}

    def commit(self, folder: Path, store: Store, node: str) -> None:
        """Move result files that another machine, `node`, computed from a folder into the store."""
        write_bytes(store.stage_path(self.key), (folder / "result").read_bytes())
        store.remove_work_folder(self.key)

    def recorded_cost(self, store: Store) -> tuple[float, int] | None:
        """Return the seconds and MACs that the finished stage took, if it recorded them."""
        saved = serialization.load_metadata(store.stage_path(self.key))
        return (saved["seconds"], total_macs(saved)) if "seconds" in saved else None

    def included_macs(self, store: Store) -> tuple[int, int]:
        """Return the MACs, forward and backward, of other stages that this stage's own count includes."""
        return 0, 0

    def as_profiled(self, fingerprint: str) -> Stage:
        """Return the stage to profile in place of this one."""
        return self

    def to_json(self) -> str:
        """Return the stage as one line of JSON."""
        content = {name.name: getattr(self, name.name) for name in fields(self)}
        return json.dumps({**content, "kind": self.kind, "job": self.job.model_dump(mode="json")})

    @staticmethod
    def from_json(text: str) -> Stage:
        """Return the stage that `to_json` wrote."""
        content = json.loads(text)
        stage_class, job = Stage._classes[content.pop("kind")], Job.model_validate(content.pop("job"))
        return stage_class(job=job, **{name: _frozen(value) for name, value in content.items()})


def total_macs(saved: State) -> int:
    """Return the MACs that a stage's file records; 0 where they were not counted."""
    return sum(saved["macs"]) if saved["macs"] is not None else 0


def cost_text(*parts: object) -> str:
    """Return a cost key."""
    return json.dumps(parts, sort_keys=True)


def _frozen(value: object) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
