"""Run a spec from end to end: plan it, compute its stages, and return the record."""

from __future__ import annotations

import atexit
import difflib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from driftline.data import using_data_folder
from driftline.device import HOST, device_count
from driftline.engine.build import DatasetCache
from driftline.engine.executors.base import Executor, OnEvent, RunSummary, ignore_event
from driftline.engine.executors.config import ExecutorConfig, Name
from driftline.engine.executors.process import keep_freed_memory
from driftline.engine.executors.scheduler import schedule
from driftline.engine.executors.sync import synchronized
from driftline.engine.planning.plan import Plan, plan
from driftline.engine.pool import executors
from driftline.engine.stages import Stage
from driftline.errors import UserError
from driftline.record.run import Record
from driftline.spec import Spec, parse, read
from driftline.spec.settings import display_name
from driftline.store.labels import write_labels
from driftline.store.store import Store
from driftline.types import Settings

ARGUMENTS = ("runs", "data_dir", "jobs", "engine", "address", "cache")


def run(
    spec: Spec | Settings | str | Path | None = None,
    *,
    runs: str | Path | None = None,
    data_dir: str | Path | None = None,
    jobs: int | None = None,
    engine: ExecutorConfig | Name | None = None,
    address: str | None = None,
    cache: bool = True,
    **parts: object,
) -> Record:
    """Run what a spec asks for, reusing finished runs, and return the record.

    `spec`: a Spec, a mapping, the path of a YAML file, or `recipe:NAME`; instead, its `parts` may be given by name.
    Data, model and methods are names or Python objects: `run(benchmark="timeline", data=samples, model=network,
    methods=["ft", Mine(alpha=0.3)])`. `runs`: a folder, or a URL such as s3://bucket/runs. With `cache=False` nothing
    is reused, results last until Python ends, and objects need no source.

    With `jobs` above 1 the runs are computed in that many worker processes, and with `engine="ray"` on a Ray cluster,
    the one at `address` if given; the record is the same, bit for bit. An `ExecutorConfig` has more settings, such as a
    timeout.
    """
    config = engine if isinstance(engine, ExecutorConfig) else ExecutorConfig(engine, jobs, address)
    parsed = as_spec(_given(spec, parts), cache)
    store = Store.create(runs) if cache else _temporary_store(runs)
    finished = run_spec(parsed, store, config, Path(data_dir) if data_dir else None)
    if failed := finished.summary.failed:
        raise UserError(f"{len(failed)} run(s) failed: {next(iter(failed.values()))}")
    return finished.record


def _given(spec: Spec | Settings | str | Path | None, parts: Settings) -> Spec | Settings | str | Path:
    """Return the given spec, or the given parts of one."""
    if spec is not None and parts:
        raise UserError(f"give a spec or its parts, not both: leave out {', '.join(parts)}")
    for name in parts.keys() - Spec.model_fields:
        if near := difflib.get_close_matches(name, ARGUMENTS, n=1, cutoff=0.8):
            raise UserError(f"run has no argument '{name}'. Did you mean '{near[0]}'?")
    return parts if spec is None else spec


def _temporary_store(runs: str | Path | None) -> Store:
    if runs is not None:
        raise UserError("cache=False keeps no results: leave out runs")
    folder = tempfile.mkdtemp(prefix="driftline-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Store.create(folder)


def as_spec(spec: Spec | Settings | str | Path, cache: bool = True) -> Spec:
    """Return the spec from any of the forms that `run` takes."""
    if isinstance(spec, Spec):
        return spec
    return parse(dict(spec), cache=cache) if isinstance(spec, Mapping) else read(spec)


@dataclass(frozen=True)
class FinishedSpec:
    """A spec after its run."""

    plan: Plan
    summary: RunSummary
    record: Record
    """The runs that did not fail."""


def run_spec(
    spec: Spec,
    store: Store,
    config: ExecutorConfig,
    data_dir: Path | None = None,
    on_plan: Callable[[Plan], None] = lambda plan: None,
    on_event: OnEvent = ignore_event,
) -> FinishedSpec:
    """Plan a spec and compute its missing stages; `on_plan` is called before the first event."""
    keep_freed_memory()
    with using_data_folder(data_dir):
        datasets = DatasetCache(data_dir)
        planned = plan(spec, datasets, store.has)
        on_plan(planned)
        summary = run_plan(planned, store, config, datasets, on_event)
    methods = {display_name(method): method for method in spec.methods}
    finished = [stage for stage in planned.stages if stage.is_result and stage.key not in summary.failed]
    chosen = {stage.key: methods[stage.job.label] for stage in finished}
    write_labels(store, {key: (method.label, method.group) for key, method in chosen.items()})
    return FinishedSpec(planned, summary, store.record(list(chosen)))


def run_plan(
    planned: Plan,
    store: Store,
    config: ExecutorConfig | None = None,
    datasets: DatasetCache | None = None,
    on_event: OnEvent = ignore_event,
) -> RunSummary:
    """Compute the missing stages of a plan with executors of its own."""
    missing = [stage for stage in planned.stages if not store.has(stage.key)]
    config = _one_worker_per_device(config or ExecutorConfig(), missing)
    if config.jobs is not None:
        config = replace(config, jobs=max(1, min(config.jobs, len(planned.stages))))
    with executors(config, store, datasets or DatasetCache()) as pool:
        return compute_stages(planned, store, pool, on_event)


def _one_worker_per_device(config: ExecutorConfig, stages: Iterable[Stage]) -> ExecutorConfig:
    """Return the configuration with as many workers as devices, unless it says how many; refuse missing devices."""
    if config.name == "ray":  # its machines may have others than this one
        return config
    names = {stage.device.name for stage in stages} - {HOST}
    count = max((device_count(name) for name in names), default=1)
    few = config.name == "serial" and config.jobs is None and count > 1
    return replace(config, name="local", jobs=count) if few else config


def compute_stages(planned: Plan, store: Store, pool: list[Executor], on_event: OnEvent = ignore_event) -> RunSummary:
    """Compute the missing stages of a plan; a remote store is kept up to date."""
    with synchronized(planned, store, on_event) as on_synchronized_event:
        return schedule(planned.stages, store, pool, on_synchronized_event)
