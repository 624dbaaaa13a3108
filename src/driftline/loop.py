"""The loop: the stream moves on, the learner answers, labels are revealed, it learns and is evaluated.

All benchmarks run on this one function; they differ in the stream, in what is revealed and in what is probed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from driftline.learners.base import Learner, is_built_in
from driftline.learners.predict_check import check_purity_once
from driftline.record.recorder import Recorder
from driftline.reveal import RevealPolicy
from driftline.types import Answers, Probe, Step, Stream


class Probes(Protocol):
    """Which probes are due after a step or, given None, after the learner has finished."""

    def due(self, step: Step | None) -> Iterable[Probe]: ...


def run(
    stream: Stream,
    learner: Learner,
    reveal: RevealPolicy,
    probes: Probes,
    recorder: Recorder,
    *,
    initial_probes: Iterable[Probe] = (),
    start: int = 0,
    indices: Iterable[int] | None = None,
    on_step: Callable[[int], None] = lambda done: None,
) -> None:
    """Run a prepared learner on a stream. Call `on_step` with the number of steps done after each.

    `initial_probes` come before the first step, and are recorded at step -1. `indices`: the steps to run, by default
    all from `start` on.
    """
    predict = check_purity_once(learner)
    for probe in initial_probes:
        recorder.add_probe(Step(-1, "0", probe.samples), probe, predict(probe.samples.x))
    for index in range(start, len(stream)) if indices is None else indices:
        step = stream[index]
        if step.one_by_one:  # the same, sample by sample
            answers = learner.answer_one_by_one(reveal.feed(step))
            recorder.add_answers(step, reveal.verified_answers(answers, trusted=is_built_in(type(learner))))
        else:
            answers = learner.answer(step.samples.x)
            recorder.add_answers(step, answers)
            if (revealed := reveal(step, answers)) is not None:
                learner.receive(revealed)
        recorder.add_diagnostics(step, {**learner.diagnostics(), **reveal.diagnostics()})
        for probe in narrowed(probes.due(step), answers, learner, reveal):
            recorder.add_probe(step, probe, predict(probe.samples.x))
        on_step(index + 1)
    learner.finish()
    for probe in probes.due(None):
        recorder.add_probe(stream[len(stream) - 1], probe, predict(probe.samples.x))


def narrowed(probes: Iterable[Probe], answers: Answers, learner: Learner, reveal: RevealPolicy) -> Iterator[Probe]:
    """Yield probes with the samples that must be asked: of those about the errors of a step, its errors alone.

    Where an answer depends on the batch that it is given in, the batch stays as it is.
    """
    for probe in probes:
        if probe.errors_only and not learner.batch_dependent:
            wrong = np.flatnonzero(reveal.task.correct(answers.prediction, probe.samples.y) < 1)
            if not len(wrong):
                continue
            probe = replace(probe, samples=probe.samples[wrong])
        yield probe
