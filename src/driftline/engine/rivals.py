"""The stages of a contest: trials in rounds, and after each round a stage that says who is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from driftline.engine.rounds import seeds_by_round
from driftline.engine.stages import Stage
from driftline.jobs import Job, hash_of


def contest_stages(job: Job, fingerprint: str, upstream: bool) -> Iterator[Stage]:
    """What decides a job's contest, the last round last; nothing if it has none, or one setting alone."""
    if job.contest is None or len(job.contest.points) < 2:
        return
    said, trials = job.model_dump(mode="json"), job.trials()
    earlier: tuple[str, ...] = ()
    for number, seeds in enumerate(seeds_by_round(job.contest), 1):
        keys: list[str] = []
        for trial in (trial for of_point in trials for trial in of_point if trial.seed in seeds):
            content = trial.model_dump(mode="json")
            first = [Stage(trial.upstream_key(fingerprint), "upstream", content)] if upstream else []
            yield from first
            needs = (*(stage.key for stage in first), *earlier)
            keys.append(trial.key(fingerprint))
            yield Stage(keys[-1], "trial", content, needs, despite=earlier)
        key = hash_of({"stage": "round", "contest": said["contest"], "after": earlier, "trials": keys})
        title = f"{job.label}: round {number} of trials"
        yield Stage(key, "round", said, (*earlier, *keys), title=title, despite=tuple(keys))
        earlier = (key,)


def merged(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Each stage once, after those it needs. A trial of several contests is called for by the rounds of all of them."""
    found: dict[str, Stage] = {}
    for stage in stages:
        known = found.setdefault(stage.key, stage)
        if known is not stage and known.despite != stage.despite:
            found[stage.key] = _for_both(known, stage)
    placed: dict[str, Stage] = {}

    def place(stage: Stage) -> None:
        for key in stage.needs:
            if key not in placed:
                place(found[key])
        placed.setdefault(stage.key, stage)

    for stage in found.values():
        place(stage)
    return tuple(placed.values())


def _for_both(one: Stage, other: Stage) -> Stage:
    """A trial that two contests have: one that is in a first round waits for no round."""
    calling = tuple(dict.fromkeys(one.despite + other.despite)) if one.despite and other.despite else ()
    own = tuple(key for key in one.needs if key not in one.despite)
    return replace(one, needs=own + calling, despite=calling)
