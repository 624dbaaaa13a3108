"""Random streams with names.

Every random choice draws from a stream derived from one root seed and a path of names. So all methods see the same
stream of samples, and adding a component never changes the random numbers of another.

>>> root = Seed(0)
>>> root.child("init").value == Seed(0).child("init").value
True
>>> root.child("init").value == root.child("batches").value
False
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from driftline.errors import UserError

MAX_SEEDS = 100_000

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Seed:
    """A 64-bit seed with named children."""

    value: int

    def child(self, *names: str | int) -> Seed:
        """Return the seed of a named component; `child("a", 1)` is `child("a").child(1)`."""
        seed = self
        for name in names:
            digest = hashlib.sha256(f"{seed.value}/{name}".encode()).digest()
            seed = Seed(int.from_bytes(digest[:8], "big"))
        return seed

    def numpy(self) -> np.random.Generator:
        """Return a fresh numpy generator; two calls give the same numbers."""
        return np.random.default_rng(self.value)

    def torch(self) -> torch.Generator:
        """Return a fresh torch generator; two calls give the same numbers."""
        import torch

        return torch.Generator().manual_seed(self.value % 2**63)

    @contextmanager
    def as_torch_default(self) -> Iterator[None]:
        """Let torch's global generators draw from this seed in this context."""
        import torch

        value = self.value % 2**63
        with torch.random.fork_rng(devices=[]):
            # `torch.manual_seed` keeps a formatted stack per call and for each kind of device that is not in use.
            torch.default_generator.manual_seed(value)
            if torch.accelerator.is_available():
                module = torch.get_device_module(torch.accelerator.current_accelerator())
                seed_all = getattr(module, "manual_seed_all", None) or getattr(module, "manual_seed", None)
                if seed_all is not None:
                    seed_all(value)
            yield


@contextmanager
def same_random_state() -> Iterator[None]:
    """Leave the global generators of the host and of the device of this context as they are."""
    import torch

    from driftline.device import HOST, current

    device = current()
    module = torch.get_device_module(device)
    with torch.random.fork_rng(devices=[]):
        if device.type == HOST or not hasattr(module, "get_rng_state"):
            yield
            return
        place = [device] if inspect.signature(module.get_rng_state).parameters else []  # mps has one device
        before = module.get_rng_state(*place)
        try:
            yield
        finally:
            module.set_rng_state(before, *place)


def first_seeds(count: int) -> tuple[int, ...]:
    """Return the seeds 0, 1, ... of a number of runs.

    >>> first_seeds(3)
    (0, 1, 2)
    """
    if count > MAX_SEEDS:
        raise UserError(f"seeds: at most {MAX_SEEDS:,}; their list must fit into memory")
    return tuple(range(count))
