"""The stages of a hyper-parameter search: runs in rounds, and after each round a stage that eliminates candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from driftline.engine.stages import Pretrain, SearchRound, SearchRun, Stage
from driftline.engine.stages.search_round import seeds_by_round
from driftline.spec.job import Job
from driftline.spec.keys import pretrain_key, run_key, search_round_key


def search_stages(job: Job, fingerprint: str, *, pretrained: bool, calibration: str | None) -> Iterator[Stage]:
    """Yield the stages of a job's search, the last round last; none if it has at most one candidate.

    `calibration`: the key of the job's calibration, which its validation streams do not need.
    """
    if job.search is None or len(job.search.candidates) < 2:
        return
    candidates, previous = job.search_jobs(), None
    for number, seeds in enumerate(seeds_by_round(job.search), 1):
        runs: list[tuple[str, ...]] = []
        for jobs in candidates:
            keys = []
            for run in (run for run in jobs if run.seed in seeds):
                model = pretrain_key(run, fingerprint) if pretrained else None
                if model is not None:
                    yield Pretrain(model, run)
                keys.append(run_key(run, fingerprint))
                needed = calibration if run.calibration_job() is not None else None
                rounds = (previous,) if previous else ()
                yield SearchRun(keys[-1], run, model, calibration=needed, rounds=rounds)
            runs.append(tuple(keys))
        key = search_round_key(job, job.search, previous, [key for keys in runs for key in keys])
        yield SearchRound(key, job, number, previous, tuple(runs))
        previous = key


def merge(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return each stage once, after those it needs; a run of several searches waits for the rounds of all."""
    by_key: dict[str, Stage] = {}
    for stage in stages:
        known = by_key.setdefault(stage.key, stage)
        if isinstance(known, SearchRun) and isinstance(stage, SearchRun) and known.rounds != stage.rounds:
            by_key[stage.key] = _merge_rounds(known, stage)
    return tuple(by_key[key] for key in _in_order(by_key))


def _in_order(stages: dict[str, Stage]) -> Iterator[str]:
    """Yield keys in the order of the stages, each after its needs."""
    placed: set[str] = set()
    for key in stages:
        waiting = [key]
        while waiting:
            missing = [need for need in stages[waiting[-1]].needs if need not in placed]
            if missing:
                waiting.append(missing[0])
                continue
            if (ready := waiting.pop()) not in placed:
                placed.add(ready)
                yield ready


def _merge_rounds(a: SearchRun, b: SearchRun) -> SearchRun:
    """Return a run that two searches share; if it is in the first round of one, it waits for no round."""
    rounds = tuple(dict.fromkeys(a.rounds + b.rounds)) if a.rounds and b.rounds else ()
    return replace(a, rounds=rounds)
