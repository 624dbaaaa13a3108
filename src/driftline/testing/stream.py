"""The contract of a stream."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from driftline.io.serialization import digest
from driftline.testing.inspect import can_reach, columns
from driftline.types import Step, Stream


def check_stream(stream: Stream) -> None:
    """Check that steps are in order, the same at every access, and that inputs do not share memory with labels."""
    n = len(stream)
    assert n > 0, "the stream has no steps"
    first = [digest(_content(stream[i])) for i in range(n)]
    again = [digest(_content(stream[i])) for i in reversed(range(n))][::-1]
    latest = None
    for i in range(n):
        assert first[i] == again[i], f"step {i} differs when it is accessed a second time"
        step = stream[i]
        assert step.index == i, f"step {i} has index {step.index}"
        assert isinstance(step.time, str), f"the time of step {i} is {step.time!r}; it must be a string"
        assert step.time, f"the time of step {i} is empty"
        samples = step.samples
        assert len(samples), f"step {i} has no samples"
        assert len(np.unique(samples.id)) == len(samples), f"step {i} has two samples with the same id"
        assert not can_reach(samples.x, [samples.y]), f"the inputs of step {i} share memory with its labels"
        if samples.time is not None:
            start = samples.time.min()
            assert latest is None or start >= latest, f"step {i} starts before the previous step"
            latest = start
    try:
        stream[n]
    except IndexError:
        pass
    else:
        raise AssertionError(f"the stream has {n} steps, but stream[{n}] raises no IndexError")
    if isinstance(stream, Iterable):
        order = [step.index for step in stream]
        assert order == list(range(n)), f"iterating over the stream gives the steps {order}"


def _content(step: Step) -> list[object]:
    return [step.index, step.time, columns(step.samples)]
