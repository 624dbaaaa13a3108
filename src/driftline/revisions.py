"""Revisions of the code that decides numbers: one for each part, held by keys and cards in place of the version.

A part is a module or package by its path in this package: `learners.replay.er` is one method, `learners.replay` its
family, `data.yearbook` a dataset's reader, `benchmarks.timeline` a benchmark, `benchmarks.timeline.scores` its scores,
`metrics.temporal` a file of metrics. `loop` and `training` belong to every run. If a change of code changes numbers,
raise the smallest part that covers it, with a comment that says why; `tests/test_frozen_scores.py` checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

RAISED: dict[str, int] = {
    "benchmarks.refinement": 2,  # validation runs are evaluated on sets of their own
    "learners.prototypes.ranpac": 2,  # a ridge below the rounding of the sums is raised
    "learners.replay.mir": 2,  # candidates are ranked only within a budget of compute
    "learners.sequence": 2,  # outside seq-to-final, fits have the budget of the benchmark
    "learners.supervised.ewc": 2,  # Fisher information is summed over batches, in another order
    "learners.supervised.mas": 2,  # the same of its importance
    "learners.test_time.lame": 2,  # a single input is answered like a batch: with rbf, its own vote counts
}
"""The revision of each part that is not at 1, such as `"learners.replay.mir": 2`."""
COMMON = ("loop", "training")
SCORED = "benchmarks.trivial_baseline"
"""The part of the scores of every run."""


def revision(part: str) -> int:
    """Return the current revision of a part."""
    return RAISED.get(part, 1)


def revisions(modules: Iterable[str]) -> dict[str, int]:
    """Return the revisions of modules of this package and of the packages that they are in.

    >>> revisions(["driftline.learners.replay.er"])
    {'learners': 1, 'learners.replay': 1, 'learners.replay.er': 1}
    """
    parts = (part for module in modules for part in _with_packages(module.removeprefix("driftline.")))
    return {part: revision(part) for part in dict.fromkeys(parts)}


def changed(recorded: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the parts whose revision is not the recorded one: the recorded and the current one."""
    return {part: (old, revision(part)) for part, old in recorded.items() if old != revision(part)}


def changed_scores(recorded: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the changed parts of a run's scores; scores without the trivial baseline are of revision 0.

    >>> changed_scores({})
    {'benchmarks.trivial_baseline': (0, 1)}
    """
    return changed({SCORED: 0, **recorded})


def describe(changes: Mapping[str, tuple[int, int]]) -> str:
    """Return changed parts as text.

    >>> describe({"training": (1, 2)})
    'training 1 → 2'
    """
    return ", ".join(f"{part} {old} → {new}" for part, (old, new) in changes.items())


def _with_packages(module: str) -> list[str]:
    names = module.split(".")
    return [".".join(names[:length]) for length in range(1, len(names) + 1)]
