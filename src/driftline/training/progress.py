"""A hook for profilers: long loops offer their items, so that a profiler can run a sample of them.

A loop over items of about equal cost is written `for batch in pulse.each(batches)`. Without a profiler this is the loop
itself. A profiler (`engine.costs.profiler`) runs some items and counts the skipped ones as their neighbors. The result
of a sampled loop is good for nothing but counting.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
FEW = 3


class Listener(Protocol):
    """A profiler of loops."""

    def each(self, items: Sequence[T], few: int) -> Iterable[T]:
        """Yield some of these items in order; all if there are no more than `few`."""

    def attached(self, meter: Any) -> None:
        """Count the passes that this meter sees."""

    def apart(self, seconds: float) -> None:
        """Exclude seconds that other iterations of the same loop do not take."""


_listener: ContextVar[Listener | None] = ContextVar("profiler", default=None)


def each(items: Sequence[T], few: int = FEW) -> Iterable[T]:
    """Return these items or, while profiling, a sample of them; up to `few` are never sampled."""
    listener = _listener.get()
    return items if listener is None else listener.each(items, few)


def listening() -> bool:
    """Whether the current stage is being profiled."""
    return _listener.get() is not None


def attached(meter: Any) -> None:
    """Tell the profiler, if there is one, which meter counts."""
    if (listener := _listener.get()) is not None:
        listener.attached(meter)


@contextmanager
def once() -> Iterator[None]:
    """Mark work that only the first iteration of a loop does."""
    began = time.process_time()
    yield
    if (listener := _listener.get()) is not None:
        listener.apart(time.process_time() - began)


def whole(rows: Tensor, n: int) -> Tensor:
    """Return the rows, repeated to be n if a profiler skipped some."""
    if len(rows) == n or not len(rows):
        return rows
    import torch

    return rows[torch.arange(n) % len(rows)]


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Let a profiler sample the loops of this context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
