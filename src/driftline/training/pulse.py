"""Long loops say what they go through, so that whoever asks what they cost need not wait for their end.

A loop over things that cost about the same is written `for batch in pulse.each(batches)`. As a rule nobody listens, and
then this is the loop itself. A rehearsal (`engine.rehearse`) takes some of the things, leaves out the others, and puts
what these would have cost on the bill. What a shortened loop leaves behind is good for nothing but counting.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
FEW = 3


class Listener(Protocol):
    """Someone who wants to know what loops cost."""

    def each(self, items: Sequence[T], few: int) -> Iterable[T]:
        """Some of these things in their order; all of them if they are no more than a few."""

    def attached(self, meter: Any) -> None:
        """A network is counted by this meter from now on."""

    def apart(self, seconds: float) -> None:
        """So much of the time went to something that other turns of the same loop need not do again."""


_listeners: list[Listener] = []


def each(items: Sequence[T], few: int = FEW) -> Iterable[T]:
    """All of these things in their order, or, in a rehearsal, some; up to `few` are always gone through."""
    return _listeners[-1].each(items, few) if _listeners else items


def listening() -> bool:
    """Whether this is a rehearsal."""
    return bool(_listeners)


def attached(meter: Any) -> None:
    """Tell a listener, if there is one, which meter counts."""
    if _listeners:
        _listeners[-1].attached(meter)


@contextmanager
def once() -> Iterator[None]:
    """What is done here is done for the first turn of a loop alone."""
    began = time.process_time()
    yield
    if _listeners:
        _listeners[-1].apart(time.process_time() - began)


def whole(rows: Tensor, n: int) -> Tensor:
    """The rows, repeated to be n if a rehearsal left some out."""
    if len(rows) == n or not len(rows):
        return rows
    import torch

    return rows[torch.arange(n) % len(rows)]


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Loops of this process are heard by a listener for a while."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
