"""While a stage is profiled, its stream is sampled."""

from __future__ import annotations

from collections.abc import Iterable

from driftline.streams.prefetch import Prefetched
from driftline.training import profiling
from driftline.types import Stream

FEW, MANY = 12, 1000
"""Streams of up to FEW steps are profiled in full, because the plan of a method depends on their number; where samples
come one by one, up to MANY, because the cost of training depends on how many labels came before."""


def without_prefetching(stream: Stream) -> Stream:
    """Return the stream without prefetching while the stage is profiled: skipped steps must not be computed."""
    return stream.stream if profiling.is_active() and isinstance(stream, Prefetched) else stream


def sampled_steps(stream: Stream, start: int) -> Iterable[int] | None:
    """Return the steps to run while the stage is profiled: a sample; None if it is not."""
    if not profiling.is_active():
        return None
    return profiling.sample(range(start, len(stream)), MANY if stream[start].one_by_one else FEW)
