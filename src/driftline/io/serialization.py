"""Save and load trees of values as one safetensors file.

A tree is made of None, booleans, numbers, strings, lists, tuples, dicts, numpy arrays, torch tensors and lazy rows.
Lazy rows are saved as arrays, or by number if their source is given again when the file is read. Nothing in the file
can run code when it is read. `public_attributes` returns the state of an object as a tree, and `restore_attributes`
puts it back into an object that was built the same way; a `Stateful` object has both as methods. Attributes that its
classes name in `transient` are left out, because building the object creates them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from driftline.device import HOST, to_device
from driftline.errors import DamagedFile
from driftline.io.atomic import write_bytes
from driftline.io.checksums import check_regular
from driftline.lazy_rows import LazyRows, RowSource
from driftline.seeds import Seed

PLAIN_TYPES = (type(None), bool, int, float, str)
METADATA_KEY = "tree"
"""The metadata entry of a file: the checksum of the plain values, that of plain values and arrays, the plain values."""


def save(tree: object, path: Path, source: RowSource | None = None) -> None:
    """Write a tree atomically; equal trees give equal bytes. Of lazy rows of `source` only the numbers are saved."""
    arrays: dict[str, np.ndarray] = {}
    plain = json.dumps(_split_arrays(tree, arrays, source))
    text = f"{_checksum(plain, {})} {_checksum(plain, arrays)} {plain}"  # one entry: the order of several varies
    write_bytes(path, to_safetensors(arrays, metadata={METADATA_KEY: text}))


def load(path: Path, source: RowSource | None = None) -> Any:
    """Read a tree that was saved with the same `source`; raise DamagedFile if it is not what was written."""
    return _insert_arrays(*_read(path), source)


def load_metadata(path: Path) -> Any:
    """Return the plain values of a tree, with None in place of its arrays, which are not read from the disk."""
    with _damage_errors(path), safe_open(path, framework="np") as file:
        checksum, _, plain = file.metadata()[METADATA_KEY].split(" ", 2)
        if checksum != _checksum(plain, {}):
            raise DamagedFile(path, "its checksum differs")
        return _insert_arrays(json.loads(plain), None)


def is_complete(path: Path) -> bool:
    """Return whether there is a complete, undamaged tree."""
    try:
        verify(path)
    except DamagedFile:
        return False
    return True


def verify(path: Path) -> None:
    """Raise DamagedFile if a tree is missing or not what was written."""
    _read(path)


def _read(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the plain values and the arrays of a tree, and verify their checksum."""
    with _damage_errors(path), safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
        _, checksum, plain = file.metadata()[METADATA_KEY].split(" ", 2)
        if checksum != _checksum(plain, arrays):
            raise DamagedFile(path, "its checksum differs")
        return json.loads(plain), arrays


def _checksum(tree: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(tree.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@contextmanager
def _damage_errors(path: Path) -> Iterator[None]:
    """Turn what a broken file raises into DamagedFile."""
    check_regular(path)
    try:
        yield
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DamagedFile(path, "it cannot be read") from error


def to_tree(thing: object) -> Any:
    """Return the state of an object as a tree."""
    if isinstance(thing, (*PLAIN_TYPES, np.ndarray, LazyRows)) or _is_tensor(thing):
        return thing
    if isinstance(thing, np.generic):
        return thing.item()
    if isinstance(thing, list | tuple):
        return type(thing)(to_tree(item) for item in thing)
    if isinstance(thing, dict):
        return {key: to_tree(value) for key, value in thing.items()}
    if hasattr(thing, "state_dict"):
        return to_tree(dict(thing.state_dict()))
    if hasattr(thing, "state") and hasattr(thing, "restore"):
        return thing.state()
    if hasattr(thing, "get_state") and hasattr(thing, "set_state"):  # torch.Generator
        return thing.get_state()
    if isinstance(thing, np.random.Generator):
        return dict(thing.bit_generator.state)
    raise TypeError(f"cannot save a {type(thing).__name__}: give it state() and restore()")


def public_attributes(thing: object) -> dict[str, Any]:
    """Return the state of an object's attributes, without transient ones and seeds, which never change."""
    left_out = declared(type(thing), "transient")
    saved = {}
    for name, value in vars(thing).items():
        if name in left_out or isinstance(value, Seed):
            continue
        try:
            saved[name] = to_tree(value)
        except TypeError as error:
            raise TypeError(f"{type(thing).__name__}.{name}: {error}, or name the attribute in `transient`") from None
    return saved


def declared(cls: type, attribute: str) -> set[str]:
    """Return the names in a class attribute, together with those of the classes that it extends."""
    return {name for one in cls.__mro__ for name in vars(one).get(attribute, ())}


def restore_attributes(thing: object, saved: Mapping[str, Any]) -> None:
    """Restore saved attributes; objects that have state of their own are restored in place."""
    for name, value in saved.items():
        setattr(thing, name, _restored(getattr(thing, name, None), value))


class Stateful:
    """An object whose state at a checkpoint is its attributes."""

    def state(self) -> dict[str, Any]:
        return public_attributes(self)

    def restore(self, saved: dict[str, Any]) -> None:
        restore_attributes(self, saved)


def _restored(present: Any, value: Any) -> Any:
    """Return the saved value, in the present object if that can hold it."""
    if hasattr(present, "load_state_dict"):
        present.load_state_dict(value)
    elif hasattr(present, "state") and hasattr(present, "restore"):
        present.restore(value)
    elif hasattr(present, "set_state"):
        present.set_state(value)
    elif isinstance(present, np.random.Generator):
        present.bit_generator.state = value
    elif isinstance(present, list | tuple) and isinstance(value, list | tuple) and len(present) == len(value):
        return type(present)(_restored(*pair) for pair in zip(present, value, strict=True))
    elif isinstance(present, dict) and isinstance(value, dict) and present.keys() == value.keys():
        return {key: _restored(present[key], value[key]) for key in value}
    elif _is_tensor(value):
        return value.to(present.device) if _is_tensor(present) else to_device(value)
    else:
        return value
    return present


def digest(tree: object) -> str:
    """Return a hash of a tree; two trees have the same hash if and only if every bit is equal."""
    hashed = hashlib.sha256()
    _update_digest(hashed.update, tree)
    return hashed.hexdigest()


def _update_digest(update: Callable[[bytes], object], tree: Any) -> None:
    if isinstance(tree, dict):
        tree = [list(pair) for pair in tree.items()]
    if isinstance(tree, list | tuple):
        update(f"[{len(tree)}".encode())
        for item in tree:
            _update_digest(update, item)
        return
    if hasattr(tree, "detach"):
        tree = tree.detach().to(HOST).numpy()
    if hasattr(tree, "tocsr"):
        tree = tree.toarray()
    if isinstance(tree, LazyRows):
        tree = tree[:]
    if isinstance(tree, np.ndarray) and tree.dtype.kind != "O":
        update(f"{tree.dtype.str}{tree.shape}".encode() + np.ascontiguousarray(tree).tobytes())
    elif hasattr(tree, "to_numpy"):
        _update_digest(update, tree.to_numpy().tolist())
    else:
        update(repr(tree.tolist() if isinstance(tree, np.ndarray) else tree).encode())


def _is_tensor(thing: object) -> bool:
    torch = sys.modules.get("torch")  # without it there are no tensors
    return torch is not None and isinstance(thing, torch.Tensor)


def _split_arrays(tree: Any, arrays: dict[str, np.ndarray], source: RowSource | None) -> Any:
    """Return the tree with every array moved into `arrays` and replaced by its name there."""
    if isinstance(tree, PLAIN_TYPES):
        return tree
    if isinstance(tree, list):
        return [_split_arrays(item, arrays, source) for item in tree]
    if isinstance(tree, tuple):
        return {"$tuple": _split_arrays(list(tree), arrays, source)}
    if isinstance(tree, dict):
        return {"$dict": _split_arrays([list(pair) for pair in tree.items()], arrays, source)}
    if isinstance(tree, LazyRows) and tree.source is source:
        return {"$rows": _split_arrays(tree.rows, arrays, source)}
    kind = "$tensor" if _is_tensor(tree) else "$array"
    array = tree.detach().to(HOST).numpy() if kind == "$tensor" else tree[:] if isinstance(tree, LazyRows) else tree
    if not isinstance(array, np.ndarray | np.generic):
        raise TypeError(f"cannot save a {type(tree).__name__}")
    if array.dtype.kind in "OU":
        texts = array.ravel().tolist()
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("cannot save an array of Python objects other than strings")
        return {"$strings": [array.dtype.str, list(array.shape), texts]}
    name = str(len(arrays))
    arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    return {kind: name}


def _insert_arrays(tree: object, arrays: dict[str, np.ndarray] | None, source: RowSource | None = None) -> Any:
    if isinstance(tree, list):
        return [_insert_arrays(item, arrays, source) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    if kind == "$tuple":
        return tuple(_insert_arrays(content, arrays, source))
    if kind == "$dict":
        return {key: value for key, value in _insert_arrays(content, arrays, source)}
    if kind == "$strings":
        dtype, shape, texts = content
        return np.array(texts, dtype=dtype).reshape(shape)
    if arrays is None:
        return None
    if kind == "$rows":
        assert source is not None
        return LazyRows(source, _insert_arrays(content, arrays))
    if kind == "$tensor":
        import torch

        return torch.from_numpy(arrays[content].copy())
    return arrays[content]
