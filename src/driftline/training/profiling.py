"""A hook for profilers: long loops offer their items, so that a profiler can run a sample of them.

The iterators of `training.batches` offer their items with `sample`; without a profiler these are all items. A profiler
(`engine.costs.profiler`) runs some items and counts the skipped ones as their neighbors. The result of a sampled
loop is used for nothing else. A loop over other iterators is profiled in full.

Streams are sampled from outside, by the indices that `loop.run` takes. Training is sampled inside: a stage with one
long fit has no other place at which a part of it can run, and the cost of a shorter fit with other settings is not
that of a part (early stopping, annealing and growing buffers depend on how far training is).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

    from driftline.training.mac_counter import MacCounter

T = TypeVar("T")
FEW = 3


class Profiler(Protocol):
    """Samples loops and counts what they cost."""

    def sample(self, items: Sequence[T], few: int) -> Iterable[T]:
        """Yield some of these items in order; all if there are no more than `few`."""

    def add_counter(self, meter: MacCounter) -> None:
        """Include the passes that this meter counts, but not the time of counting, which only a first pass takes."""


_profiler: ContextVar[Profiler | None] = ContextVar("profiler", default=None)


def sample(items: Sequence[T], few: int = FEW) -> Iterable[T]:
    """Return these items or, while profiling, a sample of them; up to `few` are never sampled."""
    profiler = _profiler.get()
    return items if profiler is None else profiler.sample(items, few)


def is_active() -> bool:
    """Whether the current stage is being profiled."""
    return _profiler.get() is not None


def add_counter(meter: MacCounter) -> None:
    """Tell the profiler, if there is one, which meter counts."""
    if (profiler := _profiler.get()) is not None:
        profiler.add_counter(meter)


def fill_rows(rows: Tensor, n: int) -> Tensor:
    """Return the rows, repeated to be n if a profiler skipped some."""
    if len(rows) == n or not len(rows):
        return rows
    import torch

    return rows[torch.arange(n) % len(rows)]


@contextmanager
def use(profiler: Profiler) -> Iterator[None]:
    """Let a profiler sample the loops of this context."""
    token = _profiler.set(profiler)
    try:
        yield
    finally:
        _profiler.reset(token)
