"""What the stages of a plan cost: from those that were computed before, and from rehearsals of the others.

One stage of each group that costs the same is looked at. Where the time is over before all groups are, the rest is
taken to cost what those of its kind do, fits by the samples that an epoch goes through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median

from driftline import state
from driftline.checksums import read_checked
from driftline.engine.alike import Alike, settings_of
from driftline.engine.rehearsals import Rehearsals
from driftline.engine.rehearse import Cost, size_of
from driftline.engine.sharing import billed, macs_of
from driftline.engine.stages import Stage, dataset_for
from driftline.errors import Damaged
from driftline.jobs import Choice, Job
from driftline.record import CARD, RUNTIME
from driftline.store import Store

Watch = Callable[[int, int, str], None]
"""Told how many of how many kinds of stages have been looked at, and which is next."""
ROUND = Cost(0.01, 0, 2000)
"""What it takes to see how a contest stands."""
PRETRAINING = 4
"""How much more time the rehearsal of pretraining has: what is learnt after it hangs on how good it is."""
SHARE, AT_LEAST = 0.1, 1.0
"""Profiling may take this share of the estimated work, or this many seconds if that is more."""
AIM = 2 / 3
"""Profiles are planned to take this share of the time they may take, because single ones can take longer."""


@dataclass
class Costs:
    """What stages cost, and what a worker needs besides."""

    by_group: dict[str, Cost]
    groups: dict[str, str]
    """The group of each stage, by its key; a round has none."""
    start: float = 0.0
    """Seconds until a worker is ready, and has done for the first time what it need do only once."""
    reading: dict[str, float] = field(default_factory=dict)
    """Seconds to read each dataset."""
    known: int = 0
    """Groups of which the store has finished stages."""
    guessed: int = 0
    """Groups for which there was no time."""

    def of(self, stage: Stage) -> Cost:
        return ROUND if stage.kind == "round" else self.by_group[self.groups[stage.key]]


def costs(
    stages: Iterable[Stage],
    alike: Alike,
    store: Store,
    where: Path | None,
    seconds: float,
    watch: Watch = lambda done, of, name: None,
    blank: bool = False,
) -> Costs:
    """What each of these stages costs, found out in about so many seconds; `blank`: with stand-ins for the data."""
    stages = [stage for stage in stages if stage.kind != "round"]
    found = Costs({}, {stage.key: alike.group(stage) for stage in stages})
    members: dict[str, list[Stage]] = {}
    for stage in stages:
        members.setdefault(found.groups[stage.key], []).append(stage)
    for group, some in members.items():
        if (cost := _remembered([stage for stage in some if stage.done(store)], store)) is not None:
            found.by_group[group], found.known = cost, found.known + 1
    missing = {group: some for group, some in members.items() if group not in found.by_group}
    if missing:
        with Rehearsals(where, blank) as room:
            _Search(found, members, alike, store, where, seconds, watch, bounded=not blank).rehearse(missing, room)
    return found


class _Search:
    """Rehearses groups one after another while there is time."""

    def __init__(
        self,
        found: Costs,
        members: Mapping[str, list[Stage]],
        alike: Alike,
        store: Store,
        where: Path | None,
        seconds: float,
        watch: Watch,
        bounded: bool,
    ) -> None:
        self._found, self._members, self._alike, self._store, self._watch = found, members, alike, store, watch
        self._where = where
        self._limit, self._bounded = seconds, bounded
        self._to_do = {group: sum(not stage.done(store) for stage in some) for group, some in members.items()}
        self._seen: set[tuple[str, str]] = set()
        self._fits: dict[str, Path] = {}  # a file for each group that other stages are made from

    def rehearse(self, missing: Mapping[str, list[Stage]], room: Rehearsals) -> None:
        shares = sum(_share(some[0]) for some in missing.values())
        late: list[str] = []
        self._found.start = room.start
        for number, (group, some) in enumerate(missing.items()):
            self._watch(number, len(missing), some[0].name)
            allowed, spent = self._allowed(), room.spent - room.start
            if spent > allowed and self._similar(some[0]):
                late.append(group)
                continue
            self._one(group, some[0], room, max(AIM * allowed - spent, 0.1 * allowed) * _share(some[0]) / shares)
            shares = max(shares - _share(some[0]), 1)
        for group in late:
            self._found.by_group[group] = self._guess(missing[group][0])
        self._found.guessed = len(late)
        self._watch(len(missing), len(missing), "")

    def _allowed(self) -> float:
        """Return the seconds that profiling may take, given the work that is known of so far."""
        work = sum(cost.seconds * self._to_do[group] for group, cost in self._found.by_group.items())
        return min(self._limit, max(AT_LEAST, SHARE * work)) if self._bounded else self._limit

    def _one(self, group: str, stage: Stage, room: Rehearsals, seconds: float) -> None:
        data = _data(stage)
        if data not in self._found.reading:
            self._found.reading[data] = room.reading(stage)
        kind = (stage.kind, stage.job["benchmark"])
        played = as_chosen(stage, self._where)
        cost, more = room.cost(played, self._made_from(stage), seconds, first=kind not in self._seen)
        self._found.by_group[group] = cost
        self._found.start += more
        self._seen.add(kind)
        self._fits[group] = room.store.stage_path(played.key)

    def _made_from(self, stage: Stage) -> dict[str, Path]:
        """A file for each fit or pretrained model that a stage needs: its own if it is done, else one like it."""
        found = {}
        for key in stage.needs:
            group = self._found.groups.get(key)
            if (own := self._store.stage_path(key)).exists():
                found[key] = own
            elif group is not None and group in self._fits:
                found[key] = self._fits[group]
            elif group is not None:
                others = (self._store.stage_path(other.key) for other in self._members[group])
                found[key] = next((path for path in others if path.exists()), own)
        return found

    def _similar(self, stage: Stage) -> list[tuple[Stage, Cost]]:
        """What is known of stages of this kind, of the same model if there are such."""
        known = [(self._members[group][0], cost) for group, cost in self._found.by_group.items() if not cost.trouble]
        same = [(other, cost) for other, cost in known if other.kind == stage.kind]
        return [(other, cost) for other, cost in same if other.job["model"] == stage.job["model"]] or same

    def _guess(self, stage: Stage) -> Cost:
        """The mean of similar stages, by the samples that they go through."""
        rows, similar = self._alike.rows(stage), self._similar(stage)
        each = [(cost, rows / self._alike.rows(other)) for other, cost in similar]
        return Cost(
            mean(cost.seconds * times for cost, times in each),
            int(mean(cost.macs * times for cost, times in each)),
            int(mean(cost.bytes for cost, _ in each)),
            int(mean(cost.backward * times for cost, times in each)),
        )


def as_chosen(stage: Stage, where: Path | None) -> Stage:
    """A run whose contest is not decided, as if the first of its settings had won; other stages as they are."""
    if not stage.is_run or not stage.job.get("contest"):
        return stage
    job = Job.model_validate(stage.job)
    method = Choice(name=job.method.name, settings=settings_of(stage.job))
    chosen = job.model_copy(update={"contest": None, "method": method})
    return replace(stage, key=chosen.key(dataset_for(chosen, where).fingerprint), job=chosen.model_dump(mode="json"))


def _share(stage: Stage) -> int:
    return PRETRAINING if stage.kind == "upstream" else 1


def _data(stage: Stage) -> str:
    return json.dumps(stage.job["data"], sort_keys=True)


def _remembered(done: list[Stage], store: Store) -> Cost | None:
    """The median of what finished stages took; None if none says."""
    told = []
    for stage in done:
        with suppress(Damaged):  # a need of it, or the note of its time
            told.append(_past(stage, store))
    told = [cost for cost in told if cost is not None]
    if not told:
        return None
    return Cost(*(median(getattr(cost, name) for cost in told) for name in ("seconds", "macs", "bytes")))


def _past(stage: Stage, store: Store) -> Cost | None:
    """What a finished stage took."""
    if stage.is_run:
        folder = store.run_folder(stage.key)
        card, runtime = (read_checked(folder / name) for name in (CARD, RUNTIME))
        counts = [card["compute"].get(name) or 0 for name in ("forward_macs", "backward_macs", "examination_macs")]
        return Cost(runtime["seconds"], max(sum(counts) - sum(billed(stage, store)), 0), size_of(folder))
    path = store.stage_path(stage.key)
    known = state.glance(path)
    return Cost(known["seconds"], macs_of(known), size_of(path)) if "seconds" in known else None
