"""Long loops over items of about equal cost, of which a sampler may run a part.

The iterators of `training.batches` take their items from `sample`. Without a sampler these are all items. With one
(`engine.costs.profiler`), some items run and count for their neighbors too, and the result is used for nothing else. A
loop over other iterators runs in full.

Streams are sampled from outside, by the indices that `loop.run` takes. Training is sampled inside: a stage with one
long fit has no other place at which a part of it can run, and the cost of a shorter fit with other settings is not
that of a part (early stopping, annealing and growing buffers depend on how far training is).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")
FEW = 3


class Sampler(Protocol):
    """Chooses the items of a loop that run."""

    def __call__(self, items: Sequence[T], few: int) -> Iterable[T]:
        """Yield some of these items in order; all if there are no more than `few`."""


_sampler: ContextVar[Sampler | None] = ContextVar("sampler", default=None)


def sample(items: Sequence[T], few: int = FEW) -> Iterable[T]:
    """Return these items or, with a sampler, some of them; up to `few` are never sampled."""
    sampler = _sampler.get()
    return items if sampler is None else sampler(items, few)


@contextmanager
def use(sampler: Sampler) -> Iterator[None]:
    """Let a sampler choose the items of all loops in this context."""
    token = _sampler.set(sampler)
    try:
        yield
    finally:
        _sampler.reset(token)
