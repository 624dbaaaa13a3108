"""Inspection of global random states, and of what can be reached from an object."""

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

from driftline.types import JsonObject, Samples


def columns(samples: Samples) -> list[object]:
    """Return all columns of samples."""
    return [getattr(samples, column.name) for column in fields(samples)]


def display_name(make: object) -> str:
    """Return the name of a class, a function or a preset."""
    make = getattr(make, "func", make)
    return str(getattr(make, "__name__", make))


@contextmanager
def no_global_randomness(what: str) -> Iterator[None]:
    """Fail if a global random generator is used in this context."""
    before = _global_states()
    yield
    used = [name for name, value in _global_states().items() if before[name] != value]
    assert not used, f"{what} uses the global random generator of {', '.join(used)}; draw from self.seed instead"


def _global_states() -> JsonObject:
    _, words, *rest = np.random.get_state(legacy=True)
    states: JsonObject = {"python": random.getstate(), "numpy": (np.asarray(words).tobytes(), *rest)}
    if importlib.util.find_spec("torch"):
        import torch

        states["torch"] = torch.random.get_rng_state().numpy().tobytes()
    return states


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed the global random generators in this context."""
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


def can_reach(start: Any, labels: list[np.ndarray]) -> bool:
    """Return whether labels can be reached from an object: by references, the base of a view, or shared memory."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, type | types.ModuleType | types.FunctionType | str | int | float):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            if any(np.may_share_memory(item, column) for column in labels):
                return True
            pending.append(item.base)
        elif hasattr(item, "untyped_storage"):  # a tensor has access to all of its storage
            pending += [np.asarray(item.detach()), item._base]
        pending += gc.get_referents(item)
    return False
