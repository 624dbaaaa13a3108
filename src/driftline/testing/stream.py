"""The contract of a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from driftline.state import digest
from driftline.testing.looking import columns, leads_to
from driftline.types import Step, Stream


def check_stream(stream: Stream) -> None:
    """Check that steps are in order, stay the same when asked for again, and keep their labels apart from inputs."""
    n = len(stream)
    assert n > 0, "the stream has no steps"
    first = [digest(_content(stream[i])) for i in range(n)]
    again = [digest(_content(stream[i])) for i in reversed(range(n))][::-1]
    earliest = None
    for i in range(n):
        assert first[i] == again[i], f"step {i} is not the same when it is asked for a second time"
        step = stream[i]
        assert step.index == i, f"step {i} says that its index is {step.index}"
        assert isinstance(step.time, str), f"the time of step {i} is {step.time!r}; it must be a text"
        assert step.time, f"the time of step {i} is empty"
        samples = step.samples
        assert len(samples), f"step {i} has no samples"
        assert len(np.unique(samples.id)) == len(samples), f"step {i} has two samples with the same id"
        assert not leads_to(samples.x, [samples.y]), f"the inputs of step {i} share memory with its labels"
        if samples.time is not None:
            began = samples.time.min()
            assert earliest is None or began >= earliest, f"step {i} begins before the step that precedes it"
            earliest = began
    try:
        stream[n]
    except IndexError:
        pass
    else:
        raise AssertionError(f"the stream has {n} steps, and yet there is a step {n}")
    if isinstance(stream, Iterable):
        order = [step.index for step in stream]
        assert order == list(range(n)), f"iterating over the stream gives the steps {order}"


def _content(step: Step) -> list[Any]:
    return [step.index, step.time, columns(step.samples)]
