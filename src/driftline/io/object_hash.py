"""Hashes of Python objects: of their content and, for a user's functions and classes, of their code.

Code is hashed as source and as compiled, with everything that it uses: other functions, classes and values, in the same
module or another one of the user's. What belongs to an installed package counts by its name and the package's version.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import functools
import hashlib
import inspect
import pickle
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
# fmt: off
BOOKKEEPING = frozenset((
    "__dict__", "__weakref__", "__module__", "__qualname__",
    "__doc__", "__firstlineno__", "__static_attributes__", "__annotations__",
    "__annotate_func__", "__annotate__", "__annotations_cache__", "__dataclass_params__",
    "__dataclass_fields__", "__match_args__", "__abstractmethods__", "_abc_impl",
    "__parameters__", "__orig_bases__",
))
# fmt: on
"""Attributes that Python gives to a class, and that say nothing more than its code."""
MISSING = object()
HEAP_TYPE = 1 << 9  # the flag of classes that Python code made


class CannotHash(Exception):
    """An object has no content or source that can be read; the message says which."""


class ObjectHasher:
    """Hashes an object; `own_modules` are then the names of the user's modules that its code is in."""

    def __init__(self) -> None:
        self.own_modules: set[str] = set()
        self._hashes: dict[int, str] = {}
        self._seen: list[object] = []  # keeps objects alive, so that no two have the same id

    def hash(self, thing: object) -> str:
        """Return the same text for the same content, also in another process."""
        if isinstance(thing, ATOMS):
            return _digest([type(thing).__name__, repr(thing)])
        if id(thing) not in self._hashes:
            self._hashes[id(thing)] = "cycle"
            self._seen.append(thing)
            self._hashes[id(thing)] = _digest(self._parts(thing))
        return self._hashes[id(thing)]

    def _parts(self, thing: Any) -> Iterator[str | bytes]:
        """Yield what identifies an object."""
        yield type(thing).__name__
        if isinstance(thing, types.ModuleType):
            yield from self._module(thing)
        elif isinstance(thing, type):
            yield from self._class(thing)
        elif isinstance(thing, types.FunctionType):
            yield from self._function(thing)
        elif isinstance(thing, types.CodeType):
            yield from self._code(thing)
        elif isinstance(thing, types.BuiltinFunctionType | types.MemberDescriptorType | types.GetSetDescriptorType):
            yield f"{getattr(thing, '__module__', '')}.{thing.__qualname__}"
        elif isinstance(thing, np.ndarray) and thing.dtype != object:
            yield from (f"{thing.dtype.str}{thing.shape}", np.ascontiguousarray(thing).tobytes())
        elif hasattr(thing, "detach") and hasattr(thing, "element_size"):
            yield from _tensor(thing)
        elif hasattr(thing, "iloc") and hasattr(thing, "dtypes"):
            yield from _frame(thing)
        else:
            for part in self._members(thing):
                yield self.hash(part)

    def _members(self, thing: Any) -> list[Any]:
        """Return the objects that a container or instance consists of."""
        if isinstance(thing, list | tuple) and type(thing) in (list, tuple):
            return list(thing)
        if type(thing) is dict:
            return [part for item in thing.items() for part in item]
        if isinstance(thing, set | frozenset):
            return sorted(self.hash(member) for member in thing)
        if isinstance(thing, property):
            return [thing.fget, thing.fset, thing.fdel]
        if isinstance(thing, classmethod | staticmethod):
            return [thing.__func__]
        if isinstance(thing, functools.cached_property):
            return [thing.func]
        if isinstance(thing, types.MappingProxyType):
            return [dict(thing)]
        try:
            reduced = thing.__reduce_ex__(4)
        except (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError) as error:
            raise CannotHash(f"a {type(thing).__name__} has no content that can be saved ({error})") from error
        if isinstance(reduced, str):
            return [type(thing), reduced, getattr(thing, "__wrapped__", None)]
        return [list(part) if isinstance(part, Iterator) else part for part in reduced]

    def _module(self, module: types.ModuleType) -> Iterator[str]:
        yield _versioned(module.__name__, "")
        if not is_own(module.__name__):
            return
        self.own_modules.add(module.__name__)
        for name, value in sorted(vars(module).items()):
            defined_here = getattr(value, "__module__", None) == module.__name__ or isinstance(value, int | float | str)
            used = isinstance(value, types.ModuleType) and is_own(value.__name__)
            if (defined_here or used) and not name.startswith("__"):
                yield from (name, self.hash(value))

    def _class(self, cls: type) -> Iterator[str]:
        yield _versioned(cls.__module__, cls.__qualname__)
        if not (is_own(cls.__module__) or _has_no_module(cls)):
            return
        if is_own(cls.__module__):
            self.own_modules.add(cls.__module__)
        for base in (type(cls), *cls.__bases__):
            yield self.hash(base)
        yield repr(inspect.get_annotations(cls))
        for field in vars(cls).get("__dataclass_fields__", {}).values():
            yield from (field.name, self.hash((field.default, field.default_factory, field.metadata)))
        for name, value in vars(cls).items():
            if name not in BOOKKEEPING and not _is_generated(cls, name, value):
                yield from (name, self.hash(value))

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        module = str(function.__globals__.get("__name__", ""))
        yield _versioned(module, function.__qualname__)
        own, code = is_own(module), function.__code__
        if own:
            self.own_modules.add(module)
            yield _source(function)
            yield self.hash(code)
            yield self.hash((function.__defaults__, function.__kwdefaults__))
            for name in sorted(_global_names(code)):
                if (value := function.__globals__.get(name, MISSING)) is not MISSING and name not in vars(builtins):
                    yield from (name, self.hash(value))
        if own or "<locals>" in code.co_qualname:  # perhaps a decorator around a function of the user's
            for cell in function.__closure__ or ():
                yield self.hash(_content(cell))

    def _code(self, code: types.CodeType) -> Iterator[str | bytes]:
        """Yield what a code object does: a file may have been edited after Python compiled it."""
        yield from (code.co_code, " ".join(code.co_names))
        for constant in code.co_consts:
            yield self.hash(constant)


def is_own(module: str | None) -> bool:
    """Return whether a module is a user's, not part of Python or of an installed package."""
    top = str(module).partition(".")[0]
    if top == "__main__":
        return True
    if module is None or top == "driftline" or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return not {"site-packages", "dist-packages"}.intersection(Path(file).parts)


def _has_no_module(cls: type) -> bool:
    """Return whether a class was made by `exec` without a module's name; Python then says that it is a builtin."""
    return bool(
        cls.__module__ == "builtins" and cls.__flags__ & HEAP_TYPE and vars(builtins).get(cls.__name__) is not cls
    )


def _versioned(module: str | None, name: str) -> str:
    """Return the name of something in a module; for an installed package, with its version."""
    package = sys.modules.get(str(module).partition(".")[0])
    if is_own(module):
        return name.rpartition("<locals>.")[2]
    return f"{module}.{name} {getattr(package, '__version__', '')}"


def _is_generated(cls: type, name: str, value: object) -> bool:
    """Return whether a dataclass or named tuple made this method from what is hashed anyway."""
    made = dataclasses.is_dataclass(cls) or issubclass(cls, tuple)
    code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
    return made and name.startswith("__") and getattr(code, "co_filename", "") == "<string>"


def _source(function: types.FunctionType) -> str:
    try:
        return inspect.getsource(function.__code__)
    except (OSError, TypeError, SyntaxError) as error:
        raise CannotHash(f"the source of {function.__qualname__} cannot be had") from error


def _global_names(code: types.CodeType) -> set[str]:
    """Return the global names that a function reads, inner functions included."""
    names = {str(one.argval) for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names.union(*map(_global_names, inner))


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _tensor(tensor: Any) -> Iterator[str | bytes]:
    """Yield the type and the bytes of a torch tensor."""
    import torch

    from driftline.device import HOST

    plain = tensor.detach().to(HOST).contiguous()
    yield f"{plain.dtype}{tuple(plain.shape)}{tensor.requires_grad}"
    yield plain.reshape(-1).view(torch.uint8).numpy().tobytes()


def _frame(frame: Any) -> Iterator[str | bytes]:
    """Yield the content of a table of pandas."""
    import pandas as pd

    yield repr([(name, str(dtype)) for name, dtype in zip(frame.columns, frame.dtypes, strict=True)])
    yield repr(frame.index.names)
    try:
        yield pd.util.hash_pandas_object(frame.index.to_frame(index=False), index=False).to_numpy().tobytes()
        for column in range(frame.shape[1]):
            yield pd.util.hash_pandas_object(frame.iloc[:, column], index=False).to_numpy().tobytes()
    except TypeError as error:
        raise CannotHash(f"its table has a column of other things than numbers, texts and dates ({error})") from error


def _digest(parts: Iterator[str | bytes] | list[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        digest.update(f"{len(content)}:".encode() + content)
    return digest.hexdigest()[:16]
