"""An open world whose order is given: by a file of the user's, or by NED's published sequences.

What is upstream is the same for all sequences, so that they share one upstream model: the samples that the file marks
or, if it marks none, those that it does not list, without transformations of listed ones; of NED's upstream classes,
the images that no sequence uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.open_world.published import PublishedSequence, image_name, read_sequences
from driftline.streams.open_world.stream import OpenWorld, Role, rows_by_class
from driftline.streams.order_file import read_order
from driftline.tasks import Classification

BY_IMAGE = "images as published"
VALIDATION = (1, 2)
"""Numbers of the sequences by which settings are chosen."""
BY_LABEL = "classes as published, images of each class drawn"


def ordered_world(dataset: Dataset, file: str, *, block: int = 100) -> OpenWorld:
    """Return the samples of a dataset in the order of a file; see `streams.order_file`."""
    _class_index(dataset)
    order = read_order(file, dataset, ("split",), repeats=False)
    upstream = np.sort(order.unlisted if order.upstream is None else order.upstream)
    known = np.unique(np.asarray(dataset.samples.y)[upstream])
    return _world(dataset, order.rows, upstream, known, block, f"as in {order.name}")


def published_world(
    dataset: Dataset,
    files: Sequence[str],
    number: int,
    *,
    role: Role = "test",
    block: int = 100,
    split: Seed = Seed(0),
    seed: Seed = Seed(0),
) -> OpenWorld:
    """Return NED's sequence of this number, on images whose classes are named by WordNet ids.

    Where only labels are known, `split` decides which images are for the streams, and `seed` which of them come when.
    """
    sequences, upstream_names = read_sequences(files)
    if number not in sequences:
        raise UserError(f"the files do not have sequence S{number}, but {', '.join(f'S{k}' for k in sequences)}")
    index = _class_index(dataset)
    known = np.array(sorted(index[name] for name in upstream_names if name in index), np.int64)
    named = _named_rows(dataset, sequences)
    labels = {k: _find(index, one.classes) for k, one in sequences.items() if one.images is None}
    pools = {
        chosen: _pools(dataset, [of for k, of in labels.items() if (k in VALIDATION) == chosen], split, last=chosen)
        for chosen in (False, True)
    }
    if number in named:
        rows, order = named[number], BY_IMAGE
        _check_found(dataset, number, rows, sequences[number].images, "image")
    else:
        _check_found(dataset, number, labels[number], sequences[number].classes, "class")
        pool = pools[number in VALIDATION]
        rows, order = _draw(dataset, labels[number], pool, number, seed.child("sequence", number)), BY_LABEL
    taken = np.concatenate([*named.values(), *pools[False], *pools[True]])
    upstream = np.setdiff1d(np.flatnonzero(np.isin(dataset.samples.y, known)), taken)
    return _world(dataset, rows, upstream, known, block, order, number, role)


def _class_index(dataset: Dataset) -> dict[str, int]:
    if not isinstance(dataset.task, Classification):
        raise UserError(f"dataset '{dataset.name}' has no classes, and open-world needs classes")
    return {name: k for k, name in enumerate(dataset.task.classes)}


def _find(index: Mapping[str, int], names: np.ndarray) -> np.ndarray:
    """Return the number of each name, -1 where there is none."""
    return np.array([index.get(name, -1) for name in names.tolist()], np.int64)


def _named_rows(dataset: Dataset, sequences: Mapping[int, PublishedSequence]) -> dict[int, np.ndarray]:
    """Return the rows of the images of each sequence that names them, -1 for an image that the dataset lacks."""
    by_name = {image_name(one): row for row, one in enumerate(dataset.samples.id.tolist())}
    return {k: _find(by_name, one.images) for k, one in sequences.items() if one.images is not None}


def _check_found(dataset: Dataset, number: int, found: np.ndarray, names: np.ndarray | None, what: str) -> None:
    if names is not None and (found < 0).any():
        first, n = names[found < 0][0], len(np.unique(names[found < 0]))
        more = f" and {n - 1:,} more" if n > 1 else ""
        raise UserError(f"S{number} has the {what} {first}{more}, which dataset '{dataset.name}' lacks")


def _pools(dataset: Dataset, labels: Sequence[np.ndarray], split: Seed, *, last: bool) -> list[np.ndarray]:
    """Return for each class the rows that sequences draw from, as many as the longest use of it needs.

    They are the first rows in a random order, or the `last`: sequences to choose settings by and those to test on
    share images only of classes that have too few.
    """
    width = dataset.task.width
    most = np.max([np.zeros(width, int), *(np.bincount(of[of >= 0], minlength=width) for of in labels)], axis=0)
    return [
        split.child("published", k).numpy().permutation(rows)[:: -1 if last else 1][: most[k]]
        for k, rows in enumerate(rows_by_class(dataset))
    ]


def _draw(dataset: Dataset, labels: np.ndarray, pools: Sequence[np.ndarray], number: int, seed: Seed) -> np.ndarray:
    """Return a row for each label, none of them twice."""
    rows = np.empty(len(labels), np.int64)
    for k in np.unique(labels).tolist():
        at = np.flatnonzero(labels == k)
        if len(at) > len(pools[k]):
            name = dataset.task.classes[k] if isinstance(dataset.task, Classification) else k
            raise UserError(
                f"S{number} has {len(at):,} images of {name}, and dataset '{dataset.name}' has {len(pools[k]):,}"
            )
        rows[at] = seed.child("rows", k).numpy().permutation(pools[k])[: len(at)]
    return rows


def _world(
    dataset: Dataset,
    rows: np.ndarray,
    upstream: np.ndarray,
    known: np.ndarray,
    block: int,
    order: str,
    number: int = 1,
    role: Role = "test",
) -> OpenWorld:
    present = np.unique(np.asarray(dataset.samples.y)[rows])
    classes = (known, np.intersect1d(present, known), np.setdiff1d(present, known))
    return OpenWorld(
        dataset, number, role, None, order, block, rows, upstream, *(tuple(part.tolist()) for part in classes)
    )
