"""Detection of random generators that a method seeds itself."""

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

from driftline.seeds import Seed

CLASSES = (
    np.random.RandomState,
    np.random.SeedSequence,
    *(np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64),
    random.Random,
)
DEFAULT_RNG = np.random.default_rng
SEED_TYPES = (int, float, str, bytes, list, tuple, np.ndarray, np.integer)
OTHER_MODULES = ("driftline.seeds", "driftline.models")

Callback = Callable[..., None]


@contextmanager
def seeded_generators(modules: Iterable[str], except_in: CodeType) -> Iterator[set[str]]:
    """Collect the generators seeded in this context, except by a `Seed`, by a model, or in calls from `except_in`.

    `modules` are patched too, as they may have imported a generator by name.
    """
    seeded: set[str] = set()

    def note(name: str, *args: object, **options: object) -> None:
        texts = [*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())]
        seeds = [*args, *options.values()]
        if seeds and isinstance(seeds[0], SEED_TYPES) and _called_by_method(except_in):
            seeded.add(f"{name}({', '.join(texts)})")

    replacements: dict[object, object] = {
        DEFAULT_RNG: _watched_function(note),
        **{kind: _watched_class(kind, note) for kind in CLASSES},
    }
    if importlib.util.find_spec("torch"):
        import torch

        replacements[torch.Generator] = _watched_torch(note)
    places = {np.random, random, *(sys.modules[name] for name in ("torch", *modules) if name in sys.modules)}
    with ExitStack() as patches:
        for place in places:
            for name, value in list(vars(place).items()):
                if isinstance(value, type | type(DEFAULT_RNG)) and value in replacements:
                    patches.enter_context(patch.object(place, name, replacements[value]))
        yield seeded


@contextmanager
def unrelated_seeds(roots: Iterable[Seed], except_in: CodeType) -> Iterator[set[str]]:
    """Collect the seeds drawn from in this context that are not `roots` or descend from them, except in `except_in`."""
    names = {root.value: "" for root in roots}  # "" for the roots and what descends from them
    drawn: set[str] = set()
    original = Seed.child

    def child(self: Seed, *path: str | int) -> Seed:
        made, name = original(self, *path), names.get(self.value, f"Seed({self.value})")
        names.setdefault(made.value, name and f"{name}.child({', '.join(map(repr, path))})")
        return made

    def watched(draw: Callable[[Seed], object]) -> Callable[[Seed], object]:
        def noted(self: Seed) -> object:
            if (name := names.get(self.value, f"Seed({self.value})")) and not _called_in(except_in):
                drawn.add(name)
            return draw(self)

        return noted

    with ExitStack() as patches:
        patches.enter_context(patch.object(Seed, "child", child))
        for draw in ("numpy", "torch", "as_torch_default"):
            patches.enter_context(patch.object(Seed, draw, watched(getattr(Seed, draw))))
        yield drawn


def _called_in(code: CodeType) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _called_by_method(except_in: CodeType) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is except_in or frame.f_globals.get("__name__", "").startswith(OTHER_MODULES):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return True


class _Replacement(type):
    """Metaclass of a class that replaces `original`: it creates and recognizes instances of the original."""

    original: Any
    note: Callback

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if "original" not in vars(cls):  # a subclass of a replacement
            return super().__call__(*args, **options)
        cls.note(cls.__name__, *args, **options)
        return cls.original(*args, **options)

    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, cls.original) if "original" in vars(cls) else super().__instancecheck__(thing)


def _watched_class(kind: type, note: Callback) -> type:
    return _Replacement(kind.__name__, (kind,), {"original": kind, "note": staticmethod(note)})


def _watched_function(note: Callback) -> Callable[..., np.random.Generator]:
    def default_rng(*args: Any, **options: Any) -> np.random.Generator:
        note("default_rng", *args, **options)
        return DEFAULT_RNG(*args, **options)

    return default_rng


def _watched_torch(note: Callback) -> type:
    import torch

    original = torch.Generator

    class Kind(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, thing: object) -> bool:
            return isinstance(thing, original)

    class Generator(original, metaclass=Kind):  # type: ignore[misc, valid-type]
        def manual_seed(self, seed: int) -> torch.Generator:
            note("Generator().manual_seed", seed)
            return super().manual_seed(seed)  # type: ignore[no-any-return]

    return Generator
