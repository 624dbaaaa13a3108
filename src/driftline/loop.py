"""The loop: the world moves, the learner answers, some labels are revealed, it learns, it is examined.

All benchmarks run on this one function; they differ in the stream, in what is revealed and in what is probed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from driftline.learners.base import Learner
from driftline.learners.unchanged import checked_once
from driftline.record import Recorder
from driftline.reveal import Revealing
from driftline.training import pulse
from driftline.types import Probe, Step, Stream

FEW, MANY = 12, 1000
"""A stream of so few steps is gone through as a whole even in a rehearsal: what a method plans hangs on how long it is.
Where samples come one by one, so does one of many steps: what lessons cost hangs on how many labels came before."""


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
    predict, few = checked_once(learner), FEW
    if pulse.listening():
        stream = getattr(stream, "stream", stream)  # steps that are left out must not be made ahead
        few = MANY if stream[start].in_turn else FEW
    for index in pulse.each(range(start, len(stream)), few):
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
