"""Forecast what a spec costs: stages, fits, multiply-accumulates, disk, and time by number of workers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from driftline.data import using_data_folder
from driftline.device import HOST, resolve
from driftline.engine.build import DatasetCache, dataset_key
from driftline.engine.costs.groups import StageGrouper
from driftline.engine.costs.profiler_process import ProfilerProcess
from driftline.engine.costs.sharing import Sharing, compute_sharing
from driftline.engine.costs.simulate import SimulatedStage, makespan
from driftline.engine.costs.stage_costs import OnProfile, StageCosts, stage_costs
from driftline.engine.executors.scheduler import completed_keys, required_stages
from driftline.engine.executors.sync import download_all
from driftline.engine.planning import matrix
from driftline.engine.planning.plan import Plan, merged
from driftline.engine.planning.plan import plan as plan_spec
from driftline.engine.stages import Stage
from driftline.spec import Spec, parse, read_yaml
from driftline.store.store import Store
from driftline.types import Settings

WORKERS = (1, 8, 64, 512)
PROFILING_SECONDS = 20.0
SpecLike = Spec | Settings | str | Path
"""A spec, a mapping, or the path of a recipe; a matrix too."""
TITLES = ("pretraining", "calibration", "historical", "final", "search", "probes and score")
"""Rows of the cost table, in the order in which stages are computed."""


@dataclass(frozen=True)
class StageTotals:
    """The stages of one row of the table."""

    stages: int
    done: int
    seconds: float
    """Of the stages that are not done, one after another."""
    macs: int
    bytes: int


@dataclass(frozen=True)
class Forecast:
    """The forecast cost and duration of a plan."""

    kinds: dict[str, StageTotals]
    """By title, in the order in which they are computed."""
    sharing: Sharing | None
    """Of the whole plan, finished stages included."""
    seconds: dict[int, float]
    """By the number of workers, each with a processor core or an accelerator like one of this machine's."""
    planning: float
    """Seconds that planning takes, once."""
    start: float
    """Seconds that a worker takes to start."""
    reading: float
    """Seconds that a worker takes to read the data."""
    datasets: int
    groups: int
    """Kinds of stages that cost different amounts."""
    known: int
    """Those with finished stages to estimate from."""
    extrapolated: int
    """Those of them for which there was no time to profile."""
    profiling: float = 0.0
    """Seconds that profiling took."""
    accelerators: tuple[str, ...] = ()
    """Names of the accelerators that networks were profiled on; none for processor cores."""
    notes: tuple[str, ...] = ()

    @property
    def macs(self) -> int:
        """Multiply-accumulates that are still to be spent."""
        return sum(row.macs for row in self.kinds.values())

    @property
    def bytes(self) -> int:
        """Disk that is still to be filled."""
        return sum(row.bytes for row in self.kinds.values())

    def to_json(self) -> str:
        """Return the forecast as JSON."""
        sharing = self.sharing
        saved = {"saved_share_of_macs": sharing.saved, "saved_in_all": sharing.saved_with_reuse} if sharing else {}
        return json.dumps({**asdict(self), "macs": self.macs, "bytes": self.bytes, **saved}, indent=1)


def forecast(
    *specs: SpecLike,
    runs: str | Path | None = None,
    data_dir: str | Path | None = None,
    seconds: float = PROFILING_SECONDS,
    workers: Sequence[int] = WORKERS,
    on_profile: OnProfile = lambda done, total, title: None,
) -> Forecast:
    """Return what one or several specs need that is not in the store yet. Nothing is written there.

    `seconds`: how long profiling may take, but no longer than a tenth of the estimated work. Stages that several specs
    share count once.
    """
    datasets, store = DatasetCache(Path(data_dir) if data_dir else None), Store.open(runs)
    with using_data_folder(datasets.data_dir):
        began = time.process_time()
        plan = merged(one for spec in specs for one in plans_for(spec, datasets))
        planning = time.process_time() - began
        accelerators = _accelerators(plan.stages)
        if store.remote is not None:  # runs have been downloaded
            download_all(plan, store.remote)
        began, grouper = time.perf_counter(), StageGrouper(plan.fit_specs, datasets)
        profiler = partial(ProfilerProcess, datasets.data_dir)
        costs = stage_costs(plan.stages, grouper, store, profiler, seconds, on_profile)
        result = build(plan, costs, grouper, store, workers, planning)
        return replace(result, profiling=time.perf_counter() - began, accelerators=accelerators)


def plans_for(spec: SpecLike, datasets: DatasetCache) -> list[Plan]:
    """Return the plans of a spec, or of the columns of a matrix."""
    content = read_yaml(spec) if isinstance(spec, str | Path) else spec
    if isinstance(content, Mapping) and "matrix" in content:
        outlined = matrix.plan_matrix(matrix.read(content), datasets)
        return [column for column in outlined.plans.values() if column.stages]
    return [plan_spec(content if isinstance(content, Spec) else parse(dict(content)), datasets)]


def build(
    plan: Plan, costs: StageCosts, grouper: StageGrouper, store: Store, workers: Sequence[int], planning: float
) -> Forecast:
    """Return the forecast of a plan, given what its stages cost."""
    done = completed_keys(plan.stages, store)
    required = required_stages([stage for stage in plan.stages if stage.key not in done])
    simulated = [
        SimulatedStage(stage.key, costs.of(stage).seconds, stage.needs, dataset_key(stage.job.data))
        for stage in required
    ]
    fits = {stage.key: costs.of(stage) for stage in plan.stages if stage.shareable}
    return Forecast(
        kinds=_totals(plan.stages, {stage.key for stage in required}, done, costs, grouper),
        sharing=compute_sharing(plan.stages, {key: cost.macs for key, cost in fits.items()}),
        seconds={n: planning + _duration(simulated, n, costs) for n in workers},
        planning=planning,
        start=costs.start,
        reading=sum(costs.reading.values()),
        datasets=len({dataset_key(stage.job.data) for stage in plan.stages}),
        groups=len(set(costs.groups.values())),
        known=costs.known,
        extrapolated=costs.extrapolated,
        notes=(*plan.notes, *_errors(plan.stages, costs)),
    )


def _accelerators(stages: Iterable[Stage]) -> tuple[str, ...]:
    """Return the accelerators that networks run on; raise UserError if one is not here to be profiled."""
    names = {stage.device.name for stage in stages} - {HOST}
    return tuple(sorted({str(resolve(name)) for name in names} - {HOST}))


def _duration(stages: Sequence[SimulatedStage], workers: int, costs: StageCosts) -> float:
    if workers == 1:  # the process that planned computes, and has the data
        return makespan(stages, 1)
    return makespan(stages, workers, costs.start, costs.reading)


def _totals(
    stages: Iterable[Stage], required: set[str], done: set[str], costs: StageCosts, grouper: StageGrouper
) -> dict[str, StageTotals]:
    """Return the rows of the cost table, in the order in which stages are computed."""
    rows: dict[str, list[Stage]] = {title: [] for title in TITLES}
    for stage in stages:
        if stage.key in costs.groups:
            rows[stage.cost_title(grouper)].append(stage)
    totals = {}
    for title, members in rows.items():
        each = [costs.of(stage) for stage in members if stage.key in required]
        totals[title] = StageTotals(
            stages=len(members),
            done=sum(stage.key in done for stage in members),
            seconds=sum(cost.seconds for cost in each),
            macs=sum(cost.macs for cost in each),
            bytes=sum(cost.bytes for cost in each),
        )
    return {title: row for title, row in totals.items() if row.stages}


def _errors(stages: Iterable[Stage], costs: StageCosts) -> tuple[str, ...]:
    """Return what went wrong in profiles, each reason once."""
    pairs = ((stage.title, costs.of(stage).error) for stage in stages)
    by_reason = {error: title for title, error in reversed(list(pairs)) if error}
    return tuple(f"{title} would fail: {error}" for error, title in by_reason.items())
