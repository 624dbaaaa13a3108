"""Read untrusted pickles: plain data and numpy arrays only; no code in the file is run.

Only the names in `ALLOWED` resolve, and what they resolve to is written here: stand-ins that take the numbers
out of the file and build arrays from them. Nothing of numpy's own unpickling is reachable, because that
trusts the flags and buffers it is given. The interpreter is Python's own in Python: the one in C allocates memory for
any number that a file of nine bytes may name.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from driftline.data import file_errors
from driftline.io import bounded_files

KEYS = (str, bytes, int, float, type(None), np.generic)
PLAIN = re.compile(r"[<>=|]?([biufc]\d{1,2}|[SU]\d{1,9}|O\d?)")


def load_pickle(path: Path, expected: str, encoding: str = "latin1") -> Any:
    """Read dicts, lists, tuples, texts, bytes, numbers and numpy arrays; `expected` describes the file in errors.

    `encoding` is how the texts of Python 2 are read; "bytes" leaves them as they are.
    """
    with file_errors(path, expected), bounded_files.open_file(path) as file:
        content, size = _unwrap(_Reader(file, encoding=encoding).load(), {})
        bounded_files.check_size(size, bounded_files.max_unpacked_bytes(path))
        return content


def load_npy(path: Path, expected: str) -> np.ndarray:
    """Read an array in numpy's format; objects are read as those of a pickle."""
    with file_errors(path, expected):
        with bounded_files.open_file(path) as file:
            version = np.lib.format.read_magic(file)
            read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            if version not in read_header:
                raise ValueError(f"version {version} of numpy's format")
            shape, _, dtype = read_header[version](file)
            if dtype.hasobject:
                content, size = _unwrap(_Reader(file, encoding="latin1").load(), {})
                bounded_files.check_size(size, bounded_files.max_unpacked_bytes(path))
                return np.asarray(content, object).reshape(shape)
        bounded_files.check_size(math.prod(shape), bounded_files.max_unpacked_bytes(path))
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False))


def _with_plain_keys(load: Callable[[Any], None], keys: slice) -> Callable[[Any], None]:
    """Check the keys on the stack before a dict takes them: the hash of nested tuples takes exponential time."""

    def checked(self: Any) -> None:
        for key in self.stack[keys]:
            if not isinstance(key, KEYS):
                raise pickle.UnpicklingError(f"it holds a dict with a {type(key).__name__} as a key")
        load(self)

    return checked


def _reject_set(self: object) -> None:
    raise pickle.UnpicklingError("it holds a set, which no dataset does")


CODES = pickle._Unpickler.dispatch
SET_CODES = (pickle.EMPTY_SET[0], pickle.FROZENSET[0], pickle.ADDITEMS[0])
KEYS_AT = {pickle.SETITEM[0]: slice(-2, -1), pickle.SETITEMS[0]: slice(0, None, 2), pickle.DICT[0]: slice(0, None, 2)}


class _Reader(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **CODES,
        **{code: _with_plain_keys(CODES[code], keys) for code, keys in KEYS_AT.items()},
        **dict.fromkeys(SET_CODES, _reject_set),
    }

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not data; do not trust this file")
        return ALLOWED[module, name]


class _Dtype:
    """Stands for a numpy dtype without fields."""

    __slots__ = ("plain",)
    __hash__ = None  # type: ignore[assignment]  # a stand-in must not get lost among the keys of a dict

    def __init__(self, code: str | bytes, *flags: object) -> None:
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
        self.plain = _fill_array(raw, dtype, shape, "F" if fortran else "C")


class _Call:
    """Stands for a function; unlike one, it has no attributes that a pickle could set."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[..., object]) -> None:
        self.run = run

    def __call__(self, *args: object) -> object:
        return self.run(*args)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("it tries to change a function; do not trust this file")


def _reconstruct(kind: type, *_: object) -> _Array:
    if kind is not _Array:
        raise pickle.UnpicklingError("it holds an array that is not numpy's")
    return _Array()


def _from_buffer(raw: object, dtype: _Dtype, shape: tuple[int, ...], order: str = "C") -> _Array:
    array = _Array()
    array.plain = _fill_array(raw, dtype, shape, order)
    return array


def _scalar(dtype: _Dtype, raw: object) -> object:
    return _fill_array(raw, dtype, (1,), "C")[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1", "iso-8859-1"):
        raise pickle.UnpicklingError(f"it encodes bytes as {encoding!r}")
    return text.encode("latin1")


def _none() -> bytes:
    return b""


def _fill_array(raw: Any, dtype: _Dtype, shape: tuple[int, ...], order: Any) -> np.ndarray:
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


def _unwrap(thing: Any, done: dict[int, tuple[Any, Any, int | None]]) -> tuple[Any, int]:
    """Return the same without stand-ins, and the size it has once everything that is shared is written out.

    `done` holds old, new and size by id, the old too so that no id is used twice; the size is None while it is open.
    """
    kind = type(thing)
    if kind is str or kind is bytes:
        return thing, 1 + len(thing)
    if kind not in (dict, list, tuple, _Array, _Dtype):
        return thing, 1
    if id(thing) in done:
        _, known, size = done[id(thing)]
        if size is None:
            raise pickle.UnpicklingError("it holds a list or dict that contains itself")
        return known, size
    new: Any = thing.plain if isinstance(thing, (_Array, _Dtype)) else thing
    done[id(thing)] = thing, new, None
    held: Any = new.reshape(-1) if isinstance(new, np.ndarray) and new.dtype == object else new
    items = held.values() if isinstance(held, dict) else held if _holds(held) else ()
    found = [_unwrap(item, done) for item in items]
    if isinstance(held, dict):
        held.update(zip(list(held), (item for item, _ in found), strict=True))
    elif isinstance(held, tuple):
        new = tuple(item for item, _ in found)
    elif _holds(held):
        for i, (item, _) in enumerate(found):
            held[i] = item
    done[id(thing)] = thing, new, 1 + sum(size for _, size in found) + getattr(new, "nbytes", 0)
    return done[id(thing)][1:]  # type: ignore[return-value]


def _holds(thing: object) -> bool:
    return isinstance(thing, list | tuple) or (isinstance(thing, np.ndarray) and thing.dtype == object)


ALLOWED: dict[tuple[str, str], object] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("_codecs", "encode"): _Call(_encode),
    ("__builtin__", "bytes"): _Call(_none),
    ("builtins", "bytes"): _Call(_none),
    ("data.utils", "Mode"): _Call(int),  # the split names of Wild-Time's first release, an enumeration of 0, 1, 2
}
for _numpy in ("numpy.core", "numpy._core"):
    ALLOWED[f"{_numpy}.multiarray", "_reconstruct"] = _Call(_reconstruct)
    ALLOWED[f"{_numpy}.multiarray", "scalar"] = _Call(_scalar)
    ALLOWED[f"{_numpy}.numeric", "_frombuffer"] = _Call(_from_buffer)
