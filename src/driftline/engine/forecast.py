"""What a spec will cost, before anything is spent: stages, fits, multiply-accumulates, disk, and hours by workers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from driftline.data import looking_in
from driftline.engine import matrix
from driftline.engine.alike import WORDS, Alike
from driftline.engine.costs import Costs, Watch, costs
from driftline.engine.execute import done, wanted
from driftline.engine.mirroring import fetch_all
from driftline.engine.plan import Plan, plan
from driftline.engine.schedule import Task, makespan
from driftline.engine.sharing import SHARED, Sharing, shared
from driftline.engine.stages import Stage
from driftline.spec import Spec, mapping, parse
from driftline.store import Store

WORKERS = (1, 8, 64, 512)
SECONDS = 20.0
Told = Spec | Mapping[str, Any] | str | Path
"""What `plan` takes: a spec, a mapping, or the path of a recipe; a matrix too."""


@dataclass(frozen=True)
class Tally:
    """The stages of one kind."""

    stages: int
    done: int
    seconds: float
    """Of those that are not done, one after another."""
    macs: int
    bytes: int


@dataclass(frozen=True)
class Forecast:
    """What a plan needs, and how long it takes."""

    kinds: dict[str, Tally]
    """By what a table calls them, in the order in which they are computed."""
    sharing: Sharing | None
    """Of the whole plan, finished stages included."""
    seconds: dict[int, float]
    """By the number of workers, each with a processor core like one of this machine's."""
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
    """Those of them of which there were finished stages to go by."""
    guessed: int
    """Those of them for which rehearsing had no time."""
    calibration: float = 0.0
    """Seconds that it took to find this out."""
    notes: tuple[str, ...] = ()

    @property
    def macs(self) -> int:
        """Multiply-accumulates that are still to be spent."""
        return sum(tally.macs for tally in self.kinds.values())

    @property
    def bytes(self) -> int:
        """Disk that is still to be filled."""
        return sum(tally.bytes for tally in self.kinds.values())

    def to_json(self) -> str:
        """As text that a script can read."""
        made = self.sharing
        saved = {"saved_share_of_macs": made.saved, "saved_in_all": made.saved_in_all} if made else {}
        return json.dumps({**asdict(self), "macs": self.macs, "bytes": self.bytes, **saved}, indent=1)


def forecast(
    *specs: Told,
    runs: str | Path | None = None,
    data_dir: str | Path | None = None,
    seconds: float = SECONDS,
    workers: Sequence[int] = WORKERS,
    watch: Watch = lambda done, of, name: None,
) -> Forecast:
    """What one or several specs need that is not in the store yet. Nothing is written there.

    `seconds`: how long profiling may take, but no longer than a tenth of the estimated work. Stages that several specs
    share count once.
    """
    where, store = Path(data_dir) if data_dir else None, Store.open(runs)
    with looking_in(where):
        began = time.process_time()
        planned = matrix.together(one for spec in specs for one in plans(spec, where))
        planning = time.process_time() - began
        if store.mirror is not None:  # runs are here by now
            fetch_all(planned, store.mirror)
        return foretold(planned, store, where, seconds, workers, planning, watch)


def plans(told: Told, where: Path | None) -> list[Plan]:
    """The plans of a spec, or of the columns of a matrix."""
    content = mapping(Path(told)) if isinstance(told, str | Path) else told
    if isinstance(content, Mapping) and "matrix" in content:
        outlined = matrix.outline(matrix.read(content), where)
        return [planned for planned in outlined.plans.values() if planned.stages]
    return [plan(content if isinstance(content, Spec) else parse(dict(content)), where)]


def foretold(
    planned: Plan,
    store: Store,
    where: Path | None,
    seconds: float,
    workers: Sequence[int],
    planning: float,
    watch: Watch = lambda done, of, name: None,
) -> Forecast:
    """The forecast of a plan, of which what is in the store is done."""
    began = time.perf_counter()
    alike = Alike(planned.trials, where)
    found = costs(planned.stages, alike, store, where, seconds, watch)
    return replace(summed(planned, found, alike, store, workers, planning), calibration=time.perf_counter() - began)


def summed(
    planned: Plan, found: Costs, alike: Alike, store: Store, workers: Sequence[int], planning: float
) -> Forecast:
    """What a plan's stages cost together."""
    there = done(planned.stages, store)
    to_do = wanted([stage for stage in planned.stages if stage.key not in there])  # as a sweep would: no spared trials
    tasks = [Task(stage.key, found.of(stage).seconds, stage.needs, _data(stage)) for stage in to_do]
    fits = [stage for stage in planned.stages if stage.kind in SHARED]
    return Forecast(
        kinds=_tallies(planned.stages, {stage.key for stage in to_do}, there, found, alike),
        sharing=shared(planned.stages, {stage.key: (found.of(stage).macs, found.of(stage).seconds) for stage in fits}),
        seconds={n: planning + _lasts(tasks, n, found) for n in workers},
        planning=planning,
        start=found.start,
        reading=sum(found.reading.values()),
        datasets=len({_data(stage) for stage in planned.stages}),
        groups=len(set(found.groups.values())),
        known=found.known,
        guessed=found.guessed,
        notes=(*planned.notes, *_troubles(planned.stages, found)),
    )


def _lasts(tasks: Sequence[Task], workers: int, found: Costs) -> float:
    if workers == 1:  # the process that planned does the work, and has the data
        return makespan(tasks, 1)
    return makespan(tasks, workers, found.start, found.reading)


def _tallies(stages: Iterable[Stage], to_do: set[str], there: set[str], found: Costs, alike: Alike) -> dict[str, Tally]:
    by_word: dict[str, list[Stage]] = {word: [] for word in WORDS.values()}
    for stage in stages:
        if stage.kind != "round":
            by_word[alike.word(stage)].append(stage)
    tallies = {}
    for word, some in by_word.items():
        costs = [found.of(stage) for stage in some if stage.key in to_do]
        sums = (
            sum(cost.seconds for cost in costs),
            sum(cost.macs for cost in costs),
            sum(cost.bytes for cost in costs),
        )
        tallies[word] = Tally(len(some), sum(stage.key in there for stage in some), *sums)
    return {word: tally for word, tally in tallies.items() if tally.stages}


def _troubles(stages: Iterable[Stage], found: Costs) -> tuple[str, ...]:
    """What went wrong in rehearsals, each once."""
    troubles = ((stage.name, found.of(stage).trouble) for stage in stages)
    by_reason = {trouble: name for name, trouble in reversed(list(troubles)) if trouble}
    return tuple(f"{name} would fail: {trouble}" for trouble, name in by_reason.items())


def _data(stage: Stage) -> str:
    return json.dumps(stage.job["data"], sort_keys=True)
