"""Load a dataset by name: its options are checked, then its samples."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from driftline import registry
from driftline.data.adapters import factory
from driftline.data.base import Dataset, validate
from driftline.errors import UserError, unknown_name
from driftline.io.locate import data_folders
from driftline.types import JsonObject, Settings


def load(name: str, options: Settings | None = None, folders: Sequence[Path] | None = None) -> Dataset:
    """Return the dataset of this name with these options, read from these folders (see `data_folders`) and checked.

    >>> len(load("digits", {"periods": 3}).samples)
    1797
    """
    make = factory(name)
    dataset = make(data_folders() if folders is None else folders, **_checked_options(name, make, options or {}))
    if not isinstance(dataset, Dataset):
        raise UserError(f"dataset '{name}' returned a {type(dataset).__name__}, not a driftline.data.Dataset")
    validate(dataset)
    return dataset


def _checked_options(name: str, make: Callable[..., Dataset], options: Settings) -> JsonObject:
    """Return the options with the types that the dataset's function declares; refuse others."""
    signature = inspect.signature(make)
    known = {p.name: p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
    for option in options:
        if option not in known:
            raise unknown_name(f"option of dataset '{name}'", option, known)
    lacking = [p.name for p in known.values() if p.default is p.empty and p.name not in options]
    if lacking:
        ways = " ".join(f"--set data.{option}=..." for option in lacking)
        raise UserError(f"dataset '{name}' needs {', '.join(lacking)}: {ways}")
    try:
        signature.bind([], **options)
    except TypeError as error:
        way = "write def NAME(folders, *, option=1): it is given a list of folders, and its options by name"
        raise UserError(f"dataset '{name}' cannot be called ({error}): {way}") from error
    types = registry.types_of(name, make)
    return {option: _typed(name, option, value, types.get(option, Any)) for option, value in options.items()}


def _typed(name: str, option: str, value: object, kind: Any) -> object:
    try:
        return TypeAdapter(kind, config=ConfigDict(coerce_numbers_to_str=True)).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "literal_error":
            raise unknown_name(f"{option} of dataset '{name}'", str(value), typing.get_args(kind)) from None
        raise UserError(f"dataset '{name}': {option}={str(value)[:60]}: {first['msg']}") from None
