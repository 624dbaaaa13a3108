"""Fits as stages: what a method's plan of trials needs, computed once for all methods that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftline import registry, state
from driftline.benchmarks.base import Layout
from driftline.data import Dataset
from driftline.errors import Damaged, UserError
from driftline.jobs import Job
from driftline.learners.base import Learner, Outcome, Recall
from driftline.learners.staged import without_arrays
from driftline.reveal import Revealing
from driftline.seeds import Seed
from driftline.store import Store
from driftline.training.trials import Trial
from driftline.types import Answers, Reveal, Stream

if TYPE_CHECKING:
    from driftline.training.meter import Meter

_shown: dict[str, list[tuple[Any, ...]]] = {}


def stream_for(learner: Learner, layout: Layout) -> Stream:
    """The stream, or the one with more samples for a learner that is privileged to see it."""
    if not learner.privileged:
        return layout.stream
    if layout.richer is None:
        raise UserError(f"{type(learner).__name__} needs more samples of the final step than there are: leave it out")
    return layout.richer


def ahead(learner: Learner, job: Job, layout: Layout) -> list[Trial]:
    """The trials that can be computed before a run: all, if every label is revealed and examined only at the end."""
    revealed = registry.get("benchmark", job.benchmark).reveals
    if not layout.waits or revealed is not Reveal.LABELS:
        return []
    return learner.fit_plan(len(stream_for(learner, layout)) - job.reveal.delay)


def lessons(learner: Learner, job: Job, dataset: Dataset, layout: Layout) -> list[tuple[Any, ...]]:
    """What a learner is shown along the stream of a job; the last few are kept, since many fits need the same."""
    key = job.trial_key(dataset.fingerprint, "", learner.privileged)
    if key not in _shown:
        if len(_shown) > 1:
            _shown.clear()
        _shown[key] = _revealed(stream_for(learner, layout), job, dataset)
    return list(_shown[key])


def _revealed(stream: Stream, job: Job, dataset: Dataset) -> list[tuple[Any, ...]]:
    reveal = Revealing(dataset.task, Reveal.LABELS, Seed(job.seed), **job.reveal.model_dump())
    unseen = Answers(np.empty(0))  # where all labels are revealed, the answers do not matter
    shown = [reveal(stream[t], unseen) for t in range(len(stream))]
    return [(each.x, each.y, each.split) for each in shown if each is not None]


def recall(job: Job, fingerprint: str, store: Store, privileged: bool, meter: Meter | None) -> Recall:
    """How a learner gets at fits that are done. With a meter, what they cost is put on the learner's bill, once."""
    billed: set[str] = set()

    def known(trial_key: str, whole: bool) -> Outcome | None:
        path = store.stage_path(job.trial_key(fingerprint, trial_key, privileged))
        try:
            outcome: Outcome = state.load(path) if whole else without_arrays(state.glance(path))
        except Damaged:
            return None
        forward, backward = outcome.pop("macs")
        outcome.pop("seconds")
        if meter is not None and trial_key not in billed:
            meter.forward, meter.backward = meter.forward + forward, meter.backward + backward
            billed.add(trial_key)
        return outcome

    return known
