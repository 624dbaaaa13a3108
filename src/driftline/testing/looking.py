"""Looking at things closely: global random numbers, and what an object leads to."""

from __future__ import annotations

import gc
import importlib.util
import random
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np

from driftline.state import digest
from driftline.types import Samples


def columns(samples: Samples) -> list[Any]:
    """All that samples hold."""
    return [getattr(samples, column.name) for column in fields(samples)]


def name_of(make: Any) -> str:
    """What to call a class, a function or a preset."""
    make = getattr(make, "func", make)
    return str(getattr(make, "__name__", make))


@contextmanager
def watched_randomness(what: str) -> Iterator[None]:
    """Fail if the global random numbers are drawn from meanwhile."""
    before = _global_states()
    yield
    moved = [name for name, value in _global_states().items() if before[name] != value]
    assert not moved, f"{what} draws from the global random numbers of {', '.join(moved)}; draw from a seed instead"


def _global_states() -> dict[str, Any]:
    states: dict[str, Any] = {"python": random.getstate(), "numpy": digest(np.random.get_state(legacy=True))}
    if importlib.util.find_spec("torch"):
        import torch

        states["torch"] = torch.random.get_rng_state().numpy().tobytes()
    return states


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Other global random numbers for a while."""
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        if importlib.util.find_spec("torch"):
            import torch

            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed)
                yield
        else:
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def leads_to(thing: Any, labels: list[np.ndarray]) -> bool:
    """Whether labels can be reached from a thing: through references, the base of a view, or shared memory."""
    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | types.ModuleType | types.FunctionType | str | int | float):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            if any(np.may_share_memory(item, column) for column in labels):
                return True
            waiting.append(item.base)
        elif hasattr(item, "untyped_storage"):  # a tensor sees all of its storage
            waiting += [np.asarray(item.detach()), item._base]
        waiting += gc.get_referents(item)
    return False
