"""Python objects that a user passes in place of a name: classes, functions, models and data.

An object has a name made of its class and a hash of its content, so that a spec, its keys and cards hold text only. It
is found by this name as long as its spec is in use. Workers receive it in memory.
"""

from __future__ import annotations

import pickle
import re
import sys
import threading
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from driftline.errors import UserError

_NAME = re.compile(r"\w+@([0-9a-f]{16})")
_pickling = threading.Lock()


@dataclass(frozen=True, eq=False)
class UserObject:
    """An object with the name that it has in a spec."""

    kind: str
    name: str
    thing: Any
    types: dict[str, Any]
    """The annotated types of its settings, which a worker could not look up."""
    modules: frozenset[str]
    """The user's modules that its code is in."""


_objects: WeakValueDictionary[str, UserObject] = WeakValueDictionary()
_received: list[UserObject] = []


def add(given: UserObject) -> UserObject:
    """Make an object known; return the one that already has its name, if there is one."""
    return _objects.setdefault(given.name, given)


def is_object(name: str) -> bool:
    """Return whether a name is that of an object."""
    return _NAME.fullmatch(name) is not None


def find(kind: str, name: str) -> UserObject:
    """Return the object of a name, or raise an error: another process than the one that ran it has no object."""
    if (found := _objects.get(name)) is None:
        raise UserError(
            f"{kind} '{name}' was a Python object, which this process does not have: run it again from Python"
        )
    return found


def types_of(name: str) -> dict[str, Any]:
    """Return the annotated types of an object's settings."""
    return _objects[name].types


def display_name(name: str) -> str:
    """Return a name without the hash of an object.

    >>> display_name("DerPP@0123456789abcdef"), display_name("er")
    ('DerPP', 'er')
    """
    return name.partition("@")[0] if is_object(name) else name


def version(name: str) -> str | None:
    """Return the hash in the name of an object; None for any other name."""
    match = _NAME.fullmatch(name)
    return match[1] if match else None


def dumps(without: str = "") -> bytes:
    """Return all objects in use for another process, except those of one kind; nothing if there are none."""
    objects = [one for one in list(_objects.values()) if one.kind != without]
    if not objects:
        return b""
    import cloudpickle

    with _pickling:
        modules = {sys.modules[name] for one in objects for name in one.modules if name in sys.modules}
        added = [module for module in modules if module.__name__ not in cloudpickle.list_registry_pickle_by_value()]
        for module in added:
            cloudpickle.register_pickle_by_value(module)  # what it is now, not what its file is by then
        try:
            return bytes(cloudpickle.dumps(objects))
        except Exception as error:
            names = ", ".join(display_name(one.name) for one in objects)
            raise UserError(f"cannot send {names} to a worker ({error}): run with one job") from error
        finally:
            for module in added:
                cloudpickle.unregister_pickle_by_value(module)


def receive(content: bytes) -> None:
    """Make the objects known that another process sent, in place of those it sent before."""
    _received[:] = [add(one) for one in pickle.loads(content)] if content else []
