"""The contract of a learner on an accelerator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline import device
from driftline.device import DeviceSettings
from driftline.testing.watched import AnswerLog
from driftline.training.mac_counter import MacCounter
from driftline.types import Answers, Network

if TYPE_CHECKING:
    from driftline.testing.learner import ContractCheck, Outcome

SCHEDULE = "all labels at once"


@dataclass(frozen=True)
class MeteredRun:
    """A run of a learner whose passes are counted, and what was saved after its first step."""

    answers: list[Answers]
    outcome: Outcome
    macs: dict[str, int]
    saved: Any


def check_on_device(check: ContractCheck, name: str, tolerance: float) -> None:
    """Check that a run on a device ends as on the CPU, also if it is resumed after its first step."""
    expected = metered_run(check)
    with device.use(DeviceSettings(name=name)):
        there = metered_run(check)
        resumed = metered_run(check, there.saved)
    for found, start, how in ((there, 0, ""), (resumed, 1, " if it is resumed")):
        _check_close(found.answers, expected.answers[start:], tolerance, f"{check.name}: answers on {name}{how}")
        if tolerance == 0:
            answers, state = expected.outcome
            assert found.outcome == (answers[start:], state), f"{check.name} ends differently on {name}{how}"
            assert found.macs == expected.macs, f"{check.name} does other work on {name}{how}"


def metered_run(check: ContractCheck, saved: Any = None) -> MeteredRun:
    """Run a learner from the start, or from what was saved after the first step."""
    counter, log, kept = MacCounter(), AnswerLog(), []

    def make_model(*arguments: Any) -> Network:
        model = check.make_model(*arguments)
        counter.attach(model)
        return model

    learner, reveal = replace(check, make_model=make_model).learner(), check.reveal(SCHEDULE)
    parts: dict[str, Any] = {"learner": learner, "reveal": reveal, "counter": counter}
    for part, state in (saved or {}).items():
        parts[part].restore(state)

    def save(done: int) -> None:
        if done == 1:
            kept.append(check.saved_and_loaded({name: part.state() for name, part in parts.items()}))

    outcome = check.follow(learner, reveal, start=1 if saved else 0, on_step=save, log=log)
    return MeteredRun(log.values, outcome, counter.state(), *kept or [None])


def _check_close(found: list[Answers], expected: list[Answers], tolerance: float, what: str) -> None:
    for ours, theirs in zip(expected, found, strict=True):
        one, other = (np.asarray(0.0 if given.scores is None else given.scores) for given in (ours, theirs))
        same = (ours.prediction == theirs.prediction).all() and np.allclose(one, other, rtol=0, atol=tolerance)
        assert same, f"{what} differ from those on the CPU by more than {tolerance:g}"
