"""Names to things, found when they are first asked for.

A thing registers itself with a decorator in its own file; putting the file into its room is all it takes to
add one. A file is loaded when a name in one of its decorators is asked for, and all of a room only if that finds
nothing: what some of them import takes seconds. Other packages add theirs through the entry-point group
`driftline.<kind>`, and a single file of the user's is named as `path/to/file.py:Name` or `module:Name`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from driftline.errors import UserError, unknown
from driftline.handed import file_of

T = TypeVar("T")

ROOMS = {
    "method": "driftline.learners",
    "dataset": "driftline.data",
    "shift": "driftline.shifts",
    "model": "driftline.models",
    "benchmark": "driftline.benchmarks",
    "metric": "driftline.metrics",
    "sink": "driftline.exports",
    "pretraining": "driftline.learners",
}
# Packages that a module may lack in a base install, and the extra that brings them.
EXTRAS = {
    "torch": "deep",
    "transformers": "text",
    "ray": "ray",
    "river": "river",
    "PIL": "vision",
    "h5py": "vision",
    "ot": "transport",
    "numba": "corruptions",
    "cv2": "corruptions",
}

_things: dict[str, dict[str, Any]] = {kind: {} for kind in ROOMS}
_lacking: dict[str, set[str]] = {}


def register(kind: str, name: str) -> Callable[[T], T]:
    """Make a class or function known under a name: `@register("method", "ft")`."""

    def keep(thing: T) -> T:
        if _things[kind].setdefault(name, thing) is not thing:
            raise ValueError(f"two {kind}s are called '{name}'")
        return thing

    return keep


def get(kind: str, name: str) -> Any:
    """The thing of this kind with this name, or an error that offers the nearest one."""
    if ":" in name:
        return _from_source(kind, name)
    if name not in _things[kind] and kind not in _lacking:
        _load_decorated(kind, name)
    things = _things[kind] if name in _things[kind] else _load(kind)
    if name in things:
        return things[name]
    extras = sorted(_lacking[kind])
    lines = "; ".join(f'pip install "driftline[{extra}]"' for extra in extras)
    raise unknown(kind, name, things, f". Some were not loaded for lack of a package: {lines}" if extras else "")


def names(kind: str) -> list[str]:
    """All names of this kind, sorted."""
    return sorted(_load(kind))


def _load_decorated(kind: str, name: str) -> None:
    """Load the files of a room with a decorator that has this name; one that lacks a package is left for `_load`."""
    decorated = re.compile(rf'^@\w+\([^)]*"{re.escape(name)}"', re.MULTILINE)
    for module, text in _texts(ROOMS[kind]).items():
        if decorated.search(text):
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    raise


@functools.cache
def _texts(room: str) -> dict[str, str]:
    """The source of each file of a room, by the name of its module; a folder counts for nothing."""
    folders = importlib.import_module(room).__path__
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.py"))]
    return {f"{room}.{file.stem}": file.read_text(encoding="utf-8") for file in files if file.stem != "__init__"}


def _load(kind: str) -> dict[str, Any]:
    if kind not in _lacking:
        _lacking[kind] = set()
        room = importlib.import_module(ROOMS[kind])
        for module in pkgutil.iter_modules(room.__path__):
            try:
                importlib.import_module(f"{ROOMS[kind]}.{module.name}")
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    raise
                _lacking[kind].add(EXTRAS[error.name])
        for entry in entry_points(group=f"driftline.{kind}"):
            try:
                _things[kind].setdefault(entry.name, entry.load())
            except Exception as error:  # another package's fault must not take ours down
                warnings.warn(f"{kind} '{entry.name}' of {entry.value} cannot be loaded: {error}", stacklevel=2)
    return _things[kind]


def _from_source(kind: str, name: str) -> Any:
    source, _, attribute = name.rpartition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # as Python itself does for scripts: a module beside the user is found
    try:
        module = _module_of_file(file_of(source)) if source.endswith(".py") else importlib.import_module(source)
    except (ImportError, OSError) as error:
        raise UserError(f"{kind} '{name}': cannot import {source}: {error}") from error
    except Exception as error:
        line = getattr(error, "lineno", None) or traceback.extract_tb(error.__traceback__)[-1].lineno
        said = getattr(error, "msg", error)
        raise UserError(f"{kind} '{name}': line {line}, {type(error).__name__}: {said}; {source} must load") from error
    if not hasattr(module, attribute):
        raise UserError(f"{kind} '{name}': {source} has no '{attribute}'")
    return getattr(module, attribute)


class _AsItIsNow(importlib.machinery.SourceFileLoader):
    """Compiles a file anew: Python takes one of the same second and size for the one that it compiled before."""

    def path_stats(self, path: Any) -> Any:
        raise OSError("its age says nothing")


def _module_of_file(path: Path) -> Any:
    path = path.resolve()
    content = path.read_bytes()
    key = f"driftline_user_{path.stem}_{hashlib.sha256(content).hexdigest()[:16]}"  # an edited file is another module
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, path, loader=_AsItIsNow(key, str(path)))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[key]
            raise
    return sys.modules[key]
