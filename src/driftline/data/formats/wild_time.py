"""Readers for the two formats of Wild-Time's datasets: its pickles, and HDF5.

Yao et al., "Wild-Time", NeurIPS 2022; the HDF5 files are those of the package wild-time-data. Both hold, per
time step, a training part and a test part. The two are put together, the training part first, because a benchmark may
make its own split; `published_split` marks the test part. The pickle's third part repeats them and is not used.
Wild-Time's own preparation loses one text per year between the two parts, in either form.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftline.data import file_errors
from driftline.data.formats import images
from driftline.data.formats.decoded_images import ResizedImages, files_signature
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.types import Inputs, Samples, Settings

Part = tuple[int, list[Inputs], np.ndarray]
"""A time step, the inputs of its two parts, and the labels of both."""

PICKLE, HDF5 = "Wild-Time's pickle", "the HDF5 file of Wild-Time-Data"
ID_STRIDE = 1_000_000  # an id is the year times this plus a count


def file_names(name: str) -> dict[str, str]:
    """Return the names of the files that may hold a dataset, with a description of each."""
    return {f"{name}.pkl": PICKLE, f"{name}.hdf5": HDF5, f"{name}.hdf": HDF5, f"{name}.h5": HDF5}


def read_steps(path: Path, steps: Iterable[int], inputs: str, labels: str, classes: int) -> Iterator[Part]:
    """Yield those of the time steps that the file has; `inputs` and `labels` are the names in the pickle."""
    if path.suffix == ".pkl":
        content = read_pickle(path, PICKLE)
        for step in steps:
            if step in content:
                yield _part(step, content[step][0], content[step][1], inputs, labels, classes)
        return
    name = "images" if inputs == "image_idxs" else "text"
    with bounded_files.open_hdf5(path) as file:
        for step in steps:
            if str(step) in file:
                train, test = (
                    {key: bounded_files.hdf5_member(file, str(step), part, key) for key in (name, "labels")}
                    for part in ("train", "test")
                )
                yield _part(step, train, test, name, "labels", classes)


def read_pickle(path: Path, expected: str) -> dict[Any, Any]:
    """Return the content of a pickle of Wild-Time, by time step."""
    from driftline.data.formats import safe_pickle

    content = safe_pickle.load_pickle(path, expected)
    if not isinstance(content, dict):
        raise ValueError(f"a {type(content).__name__}, not a dict of time steps")
    return content


def read_texts(path: Path, years: range, inputs: str, classes: int) -> tuple[Samples, np.ndarray]:
    """Return the texts of some years, and which are of test parts.

    Time is the year, and an id is the year times a million plus a count.
    """
    x: list[str] = []
    y, time, ids, test = [], [], [], []
    size = 0
    with file_errors(path, file_names(path.stem)[path.name]):
        allowed = bounded_files.max_unpacked_bytes(path)
        for year, both, labels in read_steps(path, years, inputs, "category", classes):
            for one in (one for part in both for one in part):
                x.append(_text(one))
                size += len(x[-1])
                bounded_files.check_size(size, allowed)  # one text may be there a million times
            y.append(labels)
            time.append(np.full(len(labels), year))
            ids.append(year * ID_STRIDE + np.arange(len(labels)))
            test.append(np.arange(len(labels)) >= len(both[0]))
    if not x:
        raise no_data_error(path, file_names(path.stem)[path.name], "text", years)
    samples = Samples(x=x, y=np.concatenate(y), id=np.concatenate(ids), time=np.concatenate(time))
    return samples, np.concatenate(test)


def no_split_error(path: Path) -> UserError:
    """Return the error for a file that has no split."""
    return UserError(f"published_split=true: {path.name} has no split; Wild-Time's pickle and HDF5 files have one")


class Hdf5Images(ResizedImages):
    """The images of some members of an HDF5 file, one after another, resized to a square."""

    def __init__(self, path: Path, members: Sequence[tuple[str, int]], size: int) -> None:
        self.ends = np.cumsum([length for _, length in members])
        super().__init__(int(self.ends[-1]), (size, size, 3))
        self.path, self.members, self.size = path, members, size
        self._opened: dict[tuple[int, str], Any] = {}

    def decode(self, row: int) -> np.ndarray:
        with file_errors(self.path, HDF5):
            return images.resize(self.original(row), self.size)

    def original(self, row: int) -> np.ndarray:
        k = int(np.searchsorted(self.ends, row, side="right"))
        name, length = self.members[k]
        with file_errors(self.path, HDF5):
            return np.asarray(self._member(name)[row - int(self.ends[k]) + length])

    def _member(self, name: str) -> Any:
        """Return a member of the file; each process opens it for itself, and leaves it open."""
        key = os.getpid(), name
        if key not in self._opened:
            file = bounded_files.open_hdf5(self.path)
            self._opened[key] = bounded_files.hdf5_member(file, *name.strip("/").split("/"))
        return self._opened[key]

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_opened": {}}

    def signature(self) -> str:
        return f"{self.members} {self.size} {files_signature([self.path])}"


def no_data_error(path: Path, form: str, what: str, years: range) -> UserError:
    """Return the error for a file that has nothing from these years."""
    span = f"{years.start} to {years.stop - 1}"
    return UserError(f"{path}: expected {form}, but found no {what} from {span} (options first, last)")


def _part(step: int, train: Settings, test: Settings, inputs: str, labels: str, classes: int) -> Part:
    both = [train[inputs], test[inputs]]
    y = np.concatenate([np.asarray(train[labels]), np.asarray(test[labels])])
    if y.size and (y.ndim != 1 or y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= classes):
        raise ValueError(f"labels in time step {step} that are not all whole numbers from 0 to {classes - 1}")
    if len(both[0]) + len(both[1]) != len(y):
        raise ValueError(f"{len(both[0]) + len(both[1])} inputs but {len(y)} labels in time step {step}")
    return step, both, y.astype(np.int64)


def _text(one: object) -> str:
    one = one.decode() if isinstance(one, bytes) else one
    if not isinstance(one, str):
        raise ValueError(f"{one!r}, not a text")
    return str(one)
