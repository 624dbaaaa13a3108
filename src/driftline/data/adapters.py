"""A user's own data as datasets: samples, a table, arrays, a map-style dataset, or a function.

A map-style dataset such as torchvision's has a length, and returns an image and a class for an index: always the same,
in any order and in several threads at once. Images are Pillow images or byte arrays of one shape (height, width[,
channels]). Classes are taken from its `targets` or `labels` if it has them, names of classes from its `classes`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftline import registry
from driftline.data.base import Dataset, numbered_names
from driftline.data.formats.decoded_images import DecodedImages
from driftline.errors import UserError
from driftline.io.user_objects import display_name, is_object
from driftline.lazy_rows import LazyRows
from driftline.tasks import Classification, Task
from driftline.types import Samples

EXPECTED = (
    "expected a driftline.data.Dataset, samples, arrays (x, y) or (x, y, time), or a dataset that returns an image and "
    "its class"
)


def factory(name: str) -> Callable[..., Dataset]:
    """Return the function of folders and options that makes the dataset of this name.

    `NAME:PATH` stands for the registered dataset with the option `path`, and `FILE.py:NAME` for a user's own.
    """
    registered, _, path = name.partition(":")
    if path and registered in registry.names("dataset"):
        return functools.partial(registry.get("dataset", registered), path=path)
    thing = registry.get("dataset", name)
    return _adapted(display_name(name), thing) if ":" in name or is_object(name) else thing


def _adapted(name: str, thing: Any) -> Callable[..., Dataset]:
    """Return a function of folders and options from a user's object, or a function with or without folders."""
    if hasattr(thing, "iloc"):
        from driftline.data.table import from_frame

        return from_frame(name, thing)
    if not callable(thing):
        return lambda folders: as_dataset(name, thing)
    signature = inspect.signature(thing)
    parameters = list(signature.parameters.values())
    takes_folders = any(p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters)

    @functools.wraps(thing)
    def make(folders: Any, **options: Any) -> Dataset:
        return as_dataset(name, thing(folders, **options) if takes_folders else thing(**options))

    if not takes_folders:
        first = inspect.Parameter("folders", inspect.Parameter.POSITIONAL_ONLY)
        make.__signature__ = signature.replace(parameters=[first, *parameters])  # type: ignore[attr-defined]
    return make


def as_dataset(name: str, thing: Any) -> Dataset:
    """Return a user's dataset as a `Dataset`."""
    if isinstance(thing, Dataset):
        return thing
    time = None
    if isinstance(thing, tuple):
        thing = tuple(np.asarray(part) if isinstance(part, list) else part for part in thing)
    if isinstance(thing, Samples):
        x, labels = thing.x, thing.y
    elif _is_arrays(thing):
        x, labels, *times = thing
        x = LazyRows.all_of(x) if isinstance(x, np.memmap) else np.asarray(x)
        time = np.asarray(times[0]) if times else None
    elif _is_map_style(thing):
        x, labels = LazyRows.all_of(MapImages(name, thing)), _labels(thing)
    else:
        raise UserError(f"dataset '{name}' is a {type(thing).__name__}: {EXPECTED}")
    y, task = _task(name, np.asarray(labels), len(x), getattr(thing, "classes", None))
    try:
        samples = replace(thing, y=y) if isinstance(thing, Samples) else Samples(x=x, y=y, time=time)
    except ValueError as error:
        raise UserError(f"dataset '{name}' has {error}") from None
    if samples.time is None:
        samples = replace(samples, time=np.zeros(len(y), np.int64))
    return Dataset(name, samples, task, model="conv-2" if getattr(x, "ndim", 0) == 4 else "mlp")


def _is_arrays(thing: object) -> bool:
    """Return whether a thing is (x, y) or (x, y, time), and not a list of three images."""
    if not isinstance(thing, tuple | list) or len(thing) not in (2, 3):
        return False
    arrays = all(hasattr(part, "shape") for part in thing)
    return arrays and (len(thing) == 2 or all(len(part.shape) == 1 for part in thing[1:]))


def _task(name: str, y: np.ndarray, n: int, classes: Sequence[object] | None) -> tuple[np.ndarray, Task]:
    """Return targets and task: classification for whole numbers, else regression."""
    if y.dtype.kind == "f" and y.shape == (n,):
        from driftline.data.table import regression

        return y.astype(np.float64), regression(y.astype(np.float64))
    if y.dtype.kind not in "iub" or y.shape != (n,):
        raise UserError(
            f"dataset '{name}' has answers of shape {y.shape} and type {y.dtype}, not {n} numbers. Names of classes "
            "become numbers by np.unique(names, return_inverse=True)[1]"
        )
    try:
        return y.astype(np.int64), Classification(tuple(map(str, classes or numbered_names(y))))
    except ValueError as error:
        raise UserError(f"dataset '{name}' has {error}") from None


def _is_map_style(thing: Any) -> bool:
    rows = hasattr(thing, "__getitem__") and hasattr(thing, "__len__") and len(thing) > 0
    return rows and not isinstance(thing, Mapping | str) and not hasattr(thing, "iloc")


class MapImages(DecodedImages):
    """The images of a map-style dataset."""

    def __init__(self, name: str, dataset: Any) -> None:
        self.name, self.dataset = name, dataset
        super().__init__(len(dataset), self._read(0).shape)

    def decode(self, row: int) -> np.ndarray:
        image = self._read(row)
        if image.shape != self.shape[1:]:
            found = f"{self.shape[1:]} and {image.shape}"
            raise UserError(f"dataset '{self.name}' has images of the shapes {found}: let it resize them")
        return image

    def _read(self, row: int) -> np.ndarray:
        item = self.dataset[row]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise UserError(f"dataset '{self.name}' returned a {type(item).__name__} for an index: {EXPECTED}")
        image = np.asarray(item[0])
        if image.dtype != np.uint8 or image.ndim not in (2, 3):
            found = f"{type(item[0]).__name__} of shape {image.shape} and type {image.dtype}"
            raise UserError(
                f"dataset '{self.name}' returned a {found}: let it return images as bytes, without a transform such as "
                "ToTensor"
            )
        return image[..., None] if image.ndim == 2 else image


def _labels(dataset: Any) -> Any:
    """Return the classes of a map-style dataset; without a list of them every item is read."""
    for attribute in ("targets", "labels"):
        listed = getattr(dataset, attribute, None)
        if listed is not None and len(listed) == len(dataset):
            return listed
    return [int(dataset[row][1]) for row in range(len(dataset))]
