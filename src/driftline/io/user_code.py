"""Code that a user names: `path/to/file.py:Name`, or `module:Name` for a module that Python can import.

Running a file is announced on the logger `driftline`, which the command line prints. Inside `forbid_code()` no code is
run.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

from driftline.errors import UserError
from driftline.io.user_files import check_regular, resolve

log = logging.getLogger("driftline")
_forbidden: ContextVar[bool] = ContextVar("forbidden", default=False)


class CodeNotAllowed(UserError):
    """The user's code is needed here but must not be run."""


@contextmanager
def forbid_code() -> Iterator[None]:
    """Refuse to run any code that a user names."""
    token = _forbidden.set(True)
    try:
        yield
    finally:
        _forbidden.reset(token)


def load(kind: str, name: str) -> tuple[Any, bool]:
    """Return what `name` stands for, and whether it comes from a file of the user's own, not an installed package."""
    source, _, attribute = name.rpartition(":")
    if not source or not attribute:
        raise UserError(f"{kind} '{name}' is not a name in a file or module: write FILE.py:NAME or MODULE:NAME")
    if _forbidden.get():
        raise CodeNotAllowed(f"{kind} '{name}': {source} would have to be run, and no code is run here")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # as Python does for scripts: finds modules in the current folder
    try:
        module = _import_file(resolve(source)) if source.endswith(".py") else _import_module(source)
    except (ImportError, OSError) as error:
        raise UserError(f"{kind} '{name}': cannot import {source}: {error}") from error
    except Exception as error:
        line = getattr(error, "lineno", None) or traceback.extract_tb(error.__traceback__)[-1].lineno
        message = getattr(error, "msg", error)
        raise UserError(
            f"{kind} '{name}': line {line}, {type(error).__name__}: {message}; {source} must load"
        ) from error
    if not hasattr(module, attribute):
        raise UserError(f"{kind} '{name}': {source} has no '{attribute}'")
    is_local_file = source.endswith(".py") or Path(getattr(module, "__file__", None) or "") in _local_files(source)
    return getattr(module, attribute), is_local_file


def _import_module(source: str) -> ModuleType:
    """Import a module, never one of Python's own: some of them act when they are imported."""
    if source.partition(".")[0] in sys.stdlib_module_names:
        raise ImportError(f"it is part of Python; a file of your own is named as ./{source}.py")
    files = [path for path in _local_files(source) if path.is_file()]
    if files and source not in sys.modules:
        _announce(files[0])
    return importlib.import_module(source)


def _local_files(source: str) -> list[Path]:
    """Return the files that a module may have in the current folder."""
    start = Path.cwd().joinpath(*source.split("."))
    return [start.with_name(f"{start.name}.py"), start / "__init__.py"]


def _announce(path: Path) -> None:
    here = Path.cwd()
    log.info("runs code from %s", f"./{path.relative_to(here)}" if path.is_relative_to(here) else path)


class _FreshLoader(importlib.machinery.SourceFileLoader):
    """A loader that always compiles: Python reuses what it compiled from a file of the same second and size."""

    def path_stats(self, path: object) -> Any:
        raise OSError("a compiled file is not used")


def _import_file(path: Path) -> ModuleType:
    path = path.resolve()
    check_regular(path)
    content = path.read_bytes()
    key = f"driftline_user_{path.stem}_{hashlib.sha256(content).hexdigest()[:16]}"  # an edited file is another module
    if key not in sys.modules:
        _announce(path)
        spec = importlib.util.spec_from_file_location(key, path, loader=_FreshLoader(key, str(path)))
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
