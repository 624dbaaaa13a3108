"""Another dataset as a sequence of tasks, for continual learning: split by class, permuted or rotated.

split: each task has classes of its own (class-incremental), in their own or a random order. permuted: each task has one
random permutation of the pixels (domain-incremental), as in the code of GEM (Lopez-Paz and Ranzato, "Gradient Episodic
Memory for Continual Learning", NeurIPS 2017), also the first. rotated: task t of T rotates its images by an angle from
[t, t + 1) `degrees` / T, drawn for it, so that angles increase, as in GEM; some others draw each from the whole range.
Images are rotated about the center with linear interpolation; what comes in from outside is black.

The time of a sample is the number of its task, from 1. The test images of every task are those of the dataset or, if
it has none, a share drawn from it; no task trains on an image that another tests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import ndimage

from driftline.data import Dataset, load
from driftline.errors import UserError
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import JsonObject, Samples


@register("dataset", "task-sequence")
def task_sequence(
    folders: Sequence[Path] = (),
    *,
    base: str = "color-digits",  # name of the dataset of images
    options: JsonObject | None = None,  # its options; null: its defaults
    kind: Literal["split", "permuted", "rotated"] = "split",  # how tasks differ
    tasks: int = 5,  # number of tasks
    class_order: Literal["given", "random"] = "given",  # split: order of the classes
    degrees: float = 180.0,  # rotated: end of the range of angles
    samples: int | None = None,  # training images per task, drawn at random; null: all
    test_samples: int | None = None,  # test images per task, drawn at random; null: all
    test: float = 0.2,  # share of test images, for a dataset without a test set
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """Tasks made from an image dataset, to be run with `timeline --protocol tasks`.

    >>> data = task_sequence(kind="split", tasks=5)
    >>> [np.unique(data.samples.y[data.samples.time == t]).tolist() for t in (1, 2, 5)]
    [[0, 1], [2, 3], [8, 9]]
    """
    if base == "task-sequence":
        raise UserError("task-sequence: base=task-sequence: name another dataset")
    source, root = load(base, options, folders), Seed(seed).child("task-sequence")
    x = np.asarray(source.samples.x[:])
    if not isinstance(source.task, Classification) or x.ndim != 4:
        raise UserError(f"task-sequence: base={base}: tasks are made of images with classes")
    if tasks < 2 or (kind == "split" and tasks > source.task.width):
        most = f" to {source.task.width}, the number of classes" if kind == "split" else ""
        raise UserError(f"task-sequence: tasks={tasks}: give a number from 2{most}")
    tested = source.test if source.test is not None else root.child("test").numpy().random(len(x)) < test
    rows = [np.arange(len(x))] * tasks
    if kind == "split":
        rows = _split(
            source.samples.y, source.task.width, tasks, root.child("classes") if class_order == "random" else None
        )
    rows = [_drawn(part, tested, (samples, test_samples), root.child("samples", t)) for t, part in enumerate(rows)]
    parts = [_changed(x[part], kind, (t, tasks), degrees, root.child(kind, t)) for t, part in enumerate(rows)]
    original, number = np.concatenate(rows), np.repeat(np.arange(tasks), [len(part) for part in rows])
    ids, y = (original if kind == "split" else original + number * len(x)), source.samples.y[original].astype(np.int64)
    made = Samples(np.concatenate(parts), y, id=ids, time=number + 1)
    notes = (f"{tasks} tasks of {base}, {kind}; the time is the number of the task", *source.notes)
    repeated = None if kind == "split" else original
    return Dataset("task-sequence", made, source.task, notes, source.model, test=tested[original], base=repeated)


def _split(y: np.ndarray, n_classes: int, tasks: int, seed: Seed | None) -> list[np.ndarray]:
    """Return the samples of each task, which has classes of its own, in random order if there is a seed."""
    order = np.arange(n_classes) if seed is None else seed.numpy().permutation(n_classes)
    return [np.flatnonzero(np.isin(y, group)) for group in np.array_split(order, tasks)]


def _drawn(rows: np.ndarray, tested: np.ndarray, counts: tuple[int | None, int | None], seed: Seed) -> np.ndarray:
    """Return the images of a task: these numbers of training and of test images, or all."""
    parts = []
    for part, count, name in zip((rows[~tested[rows]], rows[tested[rows]]), counts, ("train", "test"), strict=True):
        few = count is not None and count < len(part)
        parts.append(seed.child(name).numpy().choice(part, count, replace=False) if few else part)
    return np.sort(np.concatenate(parts))


def _changed(images: np.ndarray, kind: str, place: tuple[int, int], degrees: float, seed: Seed) -> np.ndarray:
    """Return the images of task t of T."""
    if kind == "split":
        return images
    n, height, width, channels = images.shape
    if kind == "permuted":
        pixels = seed.numpy().permutation(height * width)
        return images.reshape(n, height * width, channels)[:, pixels].reshape(images.shape)
    angle = (place[0] + seed.numpy().random()) * degrees / place[1]
    return np.asarray(ndimage.rotate(images, angle, axes=(1, 2), reshape=False, order=1))
