"""Old datasets are distributed as pickles, and a pickle is a program. This reader runs none of it.

Only the names in `ALLOWED` resolve, and what they resolve to is written here: stand-ins that take the numbers
out of the file and build arrays from them. Nothing of numpy's own unpickling is reachable, because that
trusts the flags and buffers it is handed.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from driftline.data import reading

PLAIN = re.compile(r"[<>=|]?([biufc]\d{1,2}|[SU]\d{1,9}|O\d?)")


def load(path: Path, expected: str, encoding: str = "latin1") -> Any:
    """Dicts, lists, tuples, texts, bytes, numbers and numpy arrays; `expected` says what the file should hold.

    `encoding` is how the texts of Python 2 are read; "bytes" leaves them as they are.
    """
    with reading(path, expected), open(path, "rb") as file:
        return _plain(_Reader(file, encoding=encoding).load(), {})


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not data; do not trust this file")
        return ALLOWED[module, name]


class _Dtype:
    """Stands for a numpy dtype without fields."""

    __slots__ = ("plain",)
    __hash__ = None  # type: ignore[assignment]  # a stand-in must not get lost among the keys of a dict

    def __init__(self, code: str | bytes, *flags: Any) -> None:
        code = _text(code)
        if not PLAIN.fullmatch(code):
            raise pickle.UnpicklingError(f"it holds an array of an unusual type, {code!r}")
        self.plain = np.dtype(object if "O" in code else code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, order, *compound = state[:5]
        if any(part is not None for part in compound):
            raise pickle.UnpicklingError("it holds an array with fields")
        self.plain = self.plain.newbyteorder(_text(order))  # type: ignore[arg-type]


class _Array:
    """Stands for a numpy array, which a pickle makes empty and fills later."""

    __slots__ = ("plain",)
    __hash__ = None  # type: ignore[assignment]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        self.plain = _filled(raw, dtype, shape, "F" if fortran else "C")


class _Call:
    """Stands for a function; unlike one, it has no attributes that a pickle could set."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run

    def __call__(self, *args: Any) -> Any:
        return self.run(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it tries to change a function; do not trust this file")


def _reconstruct(kind: type, *_: Any) -> _Array:
    if kind is not _Array:
        raise pickle.UnpicklingError("it holds an array that is not numpy's")
    return _Array()


def _from_buffer(raw: Any, dtype: _Dtype, shape: tuple[int, ...], order: str = "C") -> _Array:
    array = _Array()
    array.plain = _filled(raw, dtype, shape, order)
    return array


def _scalar(dtype: _Dtype, raw: Any) -> Any:
    return _filled(raw, dtype, (1,), "C")[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1", "iso-8859-1"):
        raise pickle.UnpicklingError(f"it encodes bytes as {encoding!r}")
    return text.encode("latin1")


def _nothing() -> bytes:
    return b""


def _filled(raw: Any, dtype: _Dtype, shape: tuple[int, ...], order: Any) -> np.ndarray:
    if not isinstance(dtype, _Dtype):
        raise pickle.UnpicklingError("it holds an array without a type")
    if dtype.plain.kind != "O":
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        return np.frombuffer(raw, dtype.plain).reshape(shape, order=order).copy()
    if type(raw) is not list:
        raise pickle.UnpicklingError("it holds an array of objects that are not listed")
    array = np.empty(len(raw), object)
    for i, item in enumerate(raw):
        array[i] = item
    return array.reshape(shape, order=order).copy()


def _text(name: str | bytes) -> str:
    return name.decode("ascii") if isinstance(name, bytes) else str(name)


def _plain(thing: Any, done: dict[int, tuple[Any, Any]]) -> Any:
    """The same without stand-ins; `done` holds old and new by id, the old too so that no id is used twice."""
    if type(thing) not in (dict, list, tuple, _Array, _Dtype):
        return thing
    if id(thing) in done:
        return done[id(thing)][1]
    new = thing.plain if isinstance(thing, (_Array, _Dtype)) else thing
    done[id(thing)] = thing, new
    if isinstance(thing, dict):
        thing.update({key: _plain(value, done) for key, value in thing.items()})
    elif isinstance(thing, list):
        thing[:] = [_plain(item, done) for item in thing]
    elif isinstance(thing, tuple):
        new = tuple(_plain(item, done) for item in thing)
        done[id(thing)] = thing, new
    elif isinstance(new, np.ndarray) and new.dtype == object:
        flat = new.reshape(-1)
        for i, item in enumerate(flat):
            flat[i] = _plain(item, done)
    return new


ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("_codecs", "encode"): _Call(_encode),
    ("__builtin__", "bytes"): _Call(_nothing),
    ("builtins", "bytes"): _Call(_nothing),
    ("data.utils", "Mode"): _Call(int),  # the split names of Wild-Time's first release, an enumeration of 0, 1, 2
}
for _numpy in ("numpy.core", "numpy._core"):
    ALLOWED[f"{_numpy}.multiarray", "_reconstruct"] = _Call(_reconstruct)
    ALLOWED[f"{_numpy}.multiarray", "scalar"] = _Call(_scalar)
    ALLOWED[f"{_numpy}.numeric", "_frombuffer"] = _Call(_from_buffer)
