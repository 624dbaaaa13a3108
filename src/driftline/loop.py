"""The loop: the world moves, the learner answers, some labels are revealed, it learns, it is examined.

All benchmarks run on this one function; they differ in the stream, in what is revealed and in what is probed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from driftline.learners.base import Learner
from driftline.record import Recorder
from driftline.reveal import Revealing
from driftline.types import Probe, Step, Stream


class Probes(Protocol):
    """Which examinations are due after a step, or, given None, after the learner has finished."""

    def due(self, step: Step | None) -> Iterable[Probe]: ...


def run(
    stream: Stream,
    learner: Learner,
    reveal: Revealing,
    probes: Probes,
    record: Recorder,
    *,
    entrance: Iterable[Probe] = (),
    start: int = 0,
    after_step: Callable[[int], None] = lambda done: None,
) -> None:
    """Take a prepared learner through a stream. `after_step` is told how many steps are done.

    The examinations `entrance` are sat before the first step and stand in the record at step -1.
    """
    for probe in entrance if start == 0 else ():
        record.probed(Step(-1, "0", probe.samples), probe, learner.predict(probe.samples.x))
    for index in range(start, len(stream)):
        step = stream[index]
        if step.in_turn:  # the same, sample by sample
            record.answered(step, learner.in_turn(reveal.turns(step)))
        else:
            answers = learner.answer(step.samples.x)
            record.answered(step, answers)
            if (shown := reveal(step, answers)) is not None:
                learner.learn(shown.x, shown.y)
        record.gauged(step, learner.gauges())
        for probe in probes.due(step):
            record.probed(step, probe, learner.predict(probe.samples.x))
        after_step(index + 1)
    learner.finish()
    for probe in probes.due(None):
        record.probed(stream[len(stream) - 1], probe, learner.predict(probe.samples.x))
