"""Which random generators a method seeds by itself."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType
from typing import Any
from unittest.mock import patch

import numpy as np

CLASSES = (
    np.random.RandomState,
    np.random.SeedSequence,
    *(np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64),
    random.Random,
)
DEFAULT_RNG = np.random.default_rng
PLAIN = int | float | str | bytes | list | tuple | np.ndarray | np.integer
NOT_THE_METHOD = ("driftline.seeds", "driftline.models")

Note = Callable[..., None]


@contextmanager
def own_generators(modules: Iterable[str], besides: CodeType) -> Iterator[set[str]]:
    """Watch which generators are seeded meanwhile, except by a `Seed`, by a model, or in calls from `besides`.

    `modules` may have imported a generator's name by itself.
    """
    made: set[str] = set()

    def note(name: str, *args: Any, **options: Any) -> None:
        given = [*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())]
        seeds = [*args, *options.values()]
        if seeds and isinstance(seeds[0], PLAIN) and _by_the_method(besides):
            made.add(f"{name}({', '.join(given)})")

    watched: dict[Any, Any] = {
        DEFAULT_RNG: _noted_function(note),
        **{kind: _noted_class(kind, note) for kind in CLASSES},
    }
    if importlib.util.find_spec("torch"):
        import torch

        watched[torch.Generator] = _noted_torch(note)
    places = {np.random, random, *(sys.modules[name] for name in ("torch", *modules) if name in sys.modules)}
    with ExitStack() as patches:
        for place in places:
            for name, value in list(vars(place).items()):
                if isinstance(value, type | type(DEFAULT_RNG)) and value in watched:
                    patches.enter_context(patch.object(place, name, watched[value]))
        yield made


def _by_the_method(besides: CodeType) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is besides or frame.f_globals.get("__name__", "").startswith(NOT_THE_METHOD):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return True


class _StandIn(type):
    """A class in the place of the one that it is derived from: makes its instances, and takes them for its own."""

    original: Any
    note: Note

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if "original" not in vars(cls):  # derived from a stand-in
            return super().__call__(*args, **options)
        cls.note(cls.__name__, *args, **options)
        return cls.original(*args, **options)

    def __instancecheck__(cls, thing: Any) -> bool:
        return isinstance(thing, cls.original) if "original" in vars(cls) else super().__instancecheck__(thing)


def _noted_class(kind: type, note: Note) -> type:
    return _StandIn(kind.__name__, (kind,), {"original": kind, "note": staticmethod(note)})


def _noted_function(note: Note) -> Callable[..., np.random.Generator]:
    def default_rng(*args: Any, **options: Any) -> np.random.Generator:
        note("default_rng", *args, **options)
        return DEFAULT_RNG(*args, **options)

    return default_rng


def _noted_torch(note: Note) -> type:
    import torch

    original = torch.Generator

    class Kind(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, thing: Any) -> bool:
            return isinstance(thing, original)

    class Generator(original, metaclass=Kind):  # type: ignore[misc, valid-type]
        def manual_seed(self, seed: int) -> torch.Generator:
            note("Generator().manual_seed", seed)
            return super().manual_seed(seed)  # type: ignore[no-any-return]

    return Generator
