"""Image and text datasets of the Hugging Face hub, or in a folder of its formats.

`--data hf:NAME` is short for `--data hf --set data.path=NAME`. A folder holds what `save_to_disk` of the package
`datasets` writes, or Parquet files as the hub has them; it is read without that package. Images are decoded when they
are needed. No code of a dataset is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from driftline.data import Dataset, file_errors, numbered_names
from driftline.data.formats import images
from driftline.data.formats.arrow_files import ArrowImages, list_splits, read_column, read_features
from driftline.errors import MissingExtra, UserError, shorten, unknown_name
from driftline.io.packages import import_package
from driftline.io.user_files import resolve
from driftline.lazy_rows import LazyRows
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import JsonObject, Samples

TEST_SPLITS = ("test", "validation")
HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


@register("dataset", "hf")
def hf(
    folders: Sequence[Path],
    *,
    path: str,  # name on the hub, folder or Parquet file
    config: str | None = None,  # configuration of a dataset that has several
    image: str = "image",  # column of the images
    text: str | None = None,  # column of the texts, for data without images
    label: str = "label",  # column of the classes
    size: int = 64,  # height and width of the images in pixels
    gray: bool = False,  # convert images to gray
) -> Dataset:
    """A dataset of the Hugging Face hub or a folder of its formats: images squeezed to `size` pixels, or texts.

    `image` or `text`, and `label`, name the columns; without a column `image` it is `text`. The split `test`, else
    `validation`, is the official test set of a dataset with the split `train`; of others the only split is read. Rows
    without a label (-1) are left out. An id is the place in the splits.
    """
    images.check_size(size)
    splits = _splits(folders, path, config)
    features = read_features(splits[0][0])
    if text is None and image not in features and "text" in features:
        text = "text"
    for column in (text or image, label):
        if column not in features:
            raise unknown_name(f"column of {path}", column, features, " (options image, text, label)")
    with file_errors(Path(path), f"classes in the column {label}"):
        parts, classes = _labels([read_column(files, label) for files in splits], features[label])
    used = [k for k, y in enumerate(parts) if (y >= 0).any()][:2]
    y, files = np.concatenate([parts[k] for k in used] or [np.zeros(0)]), [file for k in used for file in splits[k]]
    rows = np.flatnonzero(y >= 0)
    x = _texts(files, text, rows) if text else LazyRows.all_of(ArrowImages(files, image, rows, size, gray))
    note = f"{len(rows):,} texts of {path}" if text else f"{len(rows):,} pictures of {path}, at {size} x {size} pixels"
    notes = (note, *([f"{len(y) - len(rows):,} rows without a label are left out"] if len(rows) < len(y) else []))
    test = rows >= len(parts[used[0]]) if len(used) == 2 else None
    samples = Samples(x=x, y=y[rows], id=rows, time=np.zeros(len(rows), np.int64))
    model = "hashed-ngrams" if text else "conv-2"
    return Dataset("hf", samples, Classification(classes), notes, model=model, test=test)


def _labels(columns: Sequence[pa.ChunkedArray], feature: JsonObject) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Return the class of each row, -1 for none, and the names of the classes."""
    if pa.types.is_string(columns[0].type) or pa.types.is_large_string(columns[0].type):
        found = [column.to_pylist() for column in columns]
        names = tuple(sorted({name for part in found for name in part if name is not None}))
        index = {name: k for k, name in enumerate(names)}
        return [np.array([index.get(name, -1) for name in part], np.int64) for part in found], names
    labels = [np.asarray(column.cast(pa.int64()).fill_null(-1)) for column in columns]
    present = np.concatenate(labels)
    return labels, tuple(feature.get("names") or numbered_names(present[present != -1]))


def _texts(files: Sequence[Path], column: str, rows: np.ndarray) -> list[str]:
    texts: list[str] = read_column(files, column).take(rows).to_pylist()
    for row, one in zip(rows, texts, strict=True):
        if not isinstance(one, str):
            found = shorten(repr(one))
            raise UserError(f"{files[0].parent}: expected texts in the column {column}, but found {found} in row {row}")
    return texts


def _splits(folders: Sequence[Path], path: str, config: str | None) -> list[list[Path]]:
    """Return the files of the training split and of those to test on, or of the only split."""
    places = [resolve(path), *(folder / path for folder in folders)]
    local = next((place for place in places if os.path.exists(place)), None)
    if local is None and path.startswith(("/", ".", "~")):  # no name on the hub does
        raise UserError(f"dataset 'hf': there is no file or folder {path}")
    found = _on_hub(path, config) if local is None else list_splits(local / config if config else local)
    if "train" in found:
        return [found["train"], *(found[name] for name in TEST_SPLITS if name in found)]
    if len(found) > 1:
        raise UserError(f"dataset 'hf': {path} has the splits {', '.join(found)}, and none is called train")
    return list(found.values())


def _on_hub(path: str, config: str | None) -> dict[str, list[Path]]:
    """Return the files of each split in the cache of the package `datasets`, downloaded if missing."""
    if not HUB_NAME.fullmatch(path):
        raise UserError(
            f"dataset 'hf': there is no file or folder {shorten(path)}, which is not a name on the hub either"
        )
    feature = "reading datasets of the Hugging Face hub"
    try:
        datasets = import_package("datasets", feature)
    except ModuleNotFoundError:
        raise MissingExtra(feature, "hf") from None
    try:
        found = datasets.load_dataset(path, config)
    except Exception as error:  # of many kinds: no network, no such dataset, a config to choose
        raise UserError(f"dataset 'hf': cannot read {path}: {' '.join(str(error).split())[:300]}") from error
    splits = found if isinstance(found, Mapping) else {"": found}
    return {name: [Path(file["filename"]) for file in split.cache_files] for name, split in splits.items()}
