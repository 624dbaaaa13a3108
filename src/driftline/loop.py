"""The loop: the stream moves on, the learner answers, labels are revealed, it learns and is evaluated.

All benchmarks run on this one function; they differ in the stream, in what is revealed and in what is probed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from driftline.learners.base import Learner
from driftline.learners.unchanged import checked_once
from driftline.record import Recorder
from driftline.reveal import Revealing
from driftline.types import Probe, Step, Stream


class Probes(Protocol):
    """Which probes are due after a step or, given None, after the learner has finished."""

    def due(self, step: Step | None) -> Iterable[Probe]: ...


def run(
    stream: Stream,
    learner: Learner,
    reveal: Revealing,
    probes: Probes,
    record: Recorder,
    *,
    initial_probes: Iterable[Probe] = (),
    start: int = 0,
    indices: Iterable[int] | None = None,
    after_step: Callable[[int], None] = lambda done: None,
) -> None:
    """Take a prepared learner through a stream. `after_step` is called with the number of steps done.

    `initial_probes` come before the first step, and are recorded at step -1. `indices`: the steps to run, by default
    all from `start` on.
    """
    predict = checked_once(learner)
    for probe in initial_probes:
        record.probed(Step(-1, "0", probe.samples), probe, predict(probe.samples.x))
    for index in range(start, len(stream)) if indices is None else indices:
        step = stream[index]
        if step.in_turn:  # the same, sample by sample
            answers = learner.in_turn(reveal.turns(step))
            record.answered(step, reveal.recorded(answers, trusted=learner.built_in()))
        else:
            answers = learner.answer(step.samples.x)
            record.answered(step, answers)
            if (shown := reveal(step, answers)) is not None:
                learner.receive(shown)
        record.gauged(step, learner.gauges())
        for probe in probes.due(step):
            record.probed(step, probe, predict(probe.samples.x))
        after_step(index + 1)
    learner.finish()
    for probe in probes.due(None):
        record.probed(stream[len(stream) - 1], probe, predict(probe.samples.x))
