"""Costs of the stages of a plan: from finished stages, and from profiles of the others.

One stage of each group of equal cost is profiled. Groups for which no time is left are estimated from similar stages,
fits in proportion to the samples of an epoch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from driftline.engine.build import dataset_key
from driftline.engine.costs.groups import StageGrouper
from driftline.engine.costs.profiler import Cost, disk_usage
from driftline.engine.costs.profiler_process import ProfilerProcess
from driftline.engine.stages import Stage
from driftline.errors import DamagedFile
from driftline.store.store import Store

OnProfile = Callable[[int, int, str], None]
"""Called with the number of groups profiled, the number of all groups, and the title of the next stage."""
NEGLIGIBLE = Cost(0.01, 0, 2000)
"""The cost of a stage that is not worth profiling."""
MAX_SHARE, MIN_SECONDS = 0.1, 1.0
"""Profiling may take this share of the estimated work, or this many seconds if that is more."""
TARGET_SHARE = 2 / 3
"""Profiles are planned to take this share of the time they may take, because single ones can take longer."""


@dataclass
class StageCosts:
    """Costs of stages, and of starting a worker."""

    by_group: dict[str, Cost]
    groups: dict[str, str]
    """The group of each stage, by its key; stages of negligible cost have none."""
    start: float = 0.0
    """Seconds until a worker is ready, with the work that it does only once."""
    reading: dict[tuple[str, str], float] = field(default_factory=dict)
    """Seconds to read each dataset."""
    known: int = 0
    """Groups with finished stages in the store."""
    extrapolated: int = 0
    """Groups for which there was no time."""

    def of(self, stage: Stage) -> Cost:
        """Return the cost of a stage."""
        group = self.groups.get(stage.key)
        return NEGLIGIBLE if group is None else self.by_group[group]


def stage_costs(
    stages: Iterable[Stage],
    grouper: StageGrouper,
    store: Store,
    start_profiler: Callable[[], ProfilerProcess],
    seconds: float,
    on_profile: OnProfile = lambda done, total, title: None,
    bounded: bool = True,
) -> StageCosts:
    """Return what each stage costs, after about `seconds` of profiling.

    `bounded`: profile for no longer than a share of the estimated work.
    """
    groups, members = {}, defaultdict(list)
    for stage in stages:
        if (group := stage.cost_key(grouper)) is not None:
            groups[stage.key] = group
            members[group].append(stage)
    costs = StageCosts({}, groups)
    for group, alike in members.items():
        if (cost := _recorded([stage for stage in alike if stage.is_done(store)], store)) is not None:
            costs.by_group[group], costs.known = cost, costs.known + 1
    missing = {group: alike for group, alike in members.items() if group not in costs.by_group}
    if missing:
        with start_profiler() as profiler:
            _Profiling(costs, members, grouper, store, seconds, on_profile, bounded).profile(missing, profiler)
    return costs


class _Profiling:
    """Profiles groups one after another while there is time."""

    def __init__(
        self,
        costs: StageCosts,
        members: Mapping[str, list[Stage]],
        grouper: StageGrouper,
        store: Store,
        seconds: float,
        on_profile: OnProfile,
        bounded: bool,
    ) -> None:
        self._costs, self._members, self._grouper, self._store = costs, members, grouper, store
        self._on_profile = on_profile
        self._limit, self._bounded = seconds, bounded
        self._to_do = {group: sum(not stage.is_done(store) for stage in alike) for group, alike in members.items()}
        self._to_do_by_kind: Counter[str] = Counter()
        for group, number in self._to_do.items():
            self._to_do_by_kind[members[group][0].kind] += number
        self._seen: set[tuple[str, str]] = set()
        self._results: dict[str, Path] = {}  # a file for each group that other stages start from
        self._taken: dict[str, float] = {}  # by kind of stage: seconds of the latest profile

    def profile(self, missing: Mapping[str, list[Stage]], profiler: ProfilerProcess) -> None:
        """Profile one stage of each missing group; estimate those for which no time is left."""
        shares = sum(alike[0].profile_weight for alike in missing.values())
        late: list[str] = []
        self._costs.start = profiler.start
        for number, (group, (stage, *_)) in enumerate(missing.items()):
            self._on_profile(number, len(missing), stage.title)
            allowed, spent = self._allowed(), self._spent(profiler)
            skipped = self._skipped_needs(stage, late)
            too_late = spent + self._taken.get(stage.kind, 0.0) > allowed
            if (too_late or skipped) and self._similar(stage):
                late.append(group)
                continue
            time = max(TARGET_SHARE * allowed - spent, 0.1 * allowed) * stage.profile_weight / shares
            for needed in skipped:  # nothing is similar, and the stage cannot start without them
                self._profile_group(needed, missing[needed][0], profiler, time)
                late.remove(needed)
            self._profile_group(group, stage, profiler, time)
            shares = max(shares - stage.profile_weight, 1)
        for group in late:
            self._costs.by_group[group] = self._estimate(missing[group][0])
        self._costs.extrapolated = len(late)
        self._on_profile(len(missing), len(missing), "")

    def _skipped_needs(self, stage: Stage, late: Sequence[str]) -> list[str]:
        """Return the skipped groups that a stage starts from, directly or through others, in the order of the plan."""
        needed = {self._costs.groups.get(key) for key in stage.needs}
        found = [group for group in late if group in needed]
        chains = [[*self._skipped_needs(self._members[group][0], late), group] for group in found]
        return list(dict.fromkeys(one for chain in chains for one in chain))

    def _spent(self, profiler: ProfilerProcess) -> float:
        """Return the seconds of all profiles so far, without what a worker does only once."""
        return profiler.spent - self._costs.start - sum(self._costs.reading.values())

    def _allowed(self) -> float:
        """Return the seconds that profiling may take, given the work as far as it can be estimated."""
        if not self._bounded:
            return self._limit
        work, known, left = 0.0, defaultdict(list), Counter(self._to_do_by_kind)
        for group, cost in self._costs.by_group.items():
            kind = self._members[group][0].kind
            known[kind].append(cost.seconds)
            work += cost.seconds * self._to_do[group]
            left[kind] -= self._to_do[group]
        work += sum(mean(seconds) * left[kind] for kind, seconds in known.items())
        return min(self._limit, max(MIN_SECONDS, MAX_SHARE * work))

    def _profile_group(self, group: str, stage: Stage, profiler: ProfilerProcess, seconds: float) -> None:
        data = dataset_key(stage.job.data)
        if data not in self._costs.reading:
            self._costs.reading[data] = profiler.reading(stage)
        kind = (stage.kind, stage.job.benchmark)
        profiled, before = stage.as_profiled(self._grouper.fingerprint(stage)), self._spent(profiler)
        cost, more = profiler.cost(profiled, self._inputs(stage), seconds, first=kind not in self._seen)
        self._costs.by_group[group] = cost
        self._costs.start += more
        self._taken[stage.kind] = self._spent(profiler) - before
        self._seen.add(kind)
        self._results[group] = profiler.store.stage_path(profiled.key)

    def _inputs(self, stage: Stage) -> dict[str, Path]:
        """Return a file for each result that a stage needs: its own if it is done, else one of the same group."""
        inputs = {}
        for key in stage.needs:
            group = self._costs.groups.get(key)
            if (own := self._store.stage_path(key)).exists():
                inputs[key] = own
            elif group is not None and group in self._results:
                inputs[key] = self._results[group]
            elif group is not None:
                others = (self._store.stage_path(other.key) for other in self._members[group])
                inputs[key] = next((path for path in others if path.exists()), own)
        return inputs

    def _similar(self, stage: Stage) -> list[tuple[Stage, Cost]]:
        """Return what is known of stages of this class, of the same model if there are such."""
        known = [(self._members[group][0], cost) for group, cost in self._costs.by_group.items() if not cost.error]
        same = [(other, cost) for other, cost in known if type(other) is type(stage)]
        return [(other, cost) for other, cost in same if other.job.model == stage.job.model] or same

    def _estimate(self, stage: Stage) -> Cost:
        """Return the mean of similar stages, in proportion to the samples of an epoch."""
        samples = self._grouper.epoch_samples(stage)
        scaled = [(cost, samples / self._grouper.epoch_samples(other)) for other, cost in self._similar(stage)]
        return Cost(
            mean(cost.seconds * times for cost, times in scaled),
            int(mean(cost.macs * times for cost, times in scaled)),
            int(mean(cost.bytes for cost, _ in scaled)),
            int(mean(cost.backward * times for cost, times in scaled)),
        )


def _recorded(done: list[Stage], store: Store) -> Cost | None:
    """Return the median of what finished stages took; None if none recorded it."""
    costs = []
    for stage in done:
        with suppress(DamagedFile):  # of a stage that it needs, or of its runtime
            if (recorded := stage.recorded_cost(store)) is not None:
                costs.append((*recorded, disk_usage(store.folder / stage.result_name)))
    return Cost(*(median(values) for values in zip(*costs, strict=True))) if costs else None
