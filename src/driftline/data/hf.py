"""Image datasets of the Hugging Face hub, or in a folder that `save_to_disk` of the package `datasets` has written.

`--data hf:NAME` is short for `--data hf --set data.path=NAME`. Images are decoded when they are needed. No code of a
dataset is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftline.data import Dataset, file_errors, numbered_names
from driftline.data.formats import images
from driftline.data.formats.decoded_images import DecodedImages, files_signature
from driftline.errors import MissingExtra, UserError, unknown_name
from driftline.io.user_files import resolve
from driftline.lazy_rows import LazyRows
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

TEST_SPLITS = ("test", "validation")


@register("dataset", "hf")
def hf(
    folders: Sequence[Path],
    *,
    path: str,
    config: str | None = None,
    image: str = "image",
    label: str = "label",
    size: int = 64,
    gray: bool = False,
) -> Dataset:
    """An image dataset of the Hugging Face hub or a folder of its format, squeezed to a square of `size` pixels.

    `image` and `label` name the columns. The split `test`, else `validation`, is the official test set of a dataset
    with the split `train`; of others the only split is read. An id is the place in the splits.
    """
    images.check_size(size)
    splits = _splits(path, config)
    for column in (image, label):
        if column not in splits[0].column_names:
            raise unknown_name(f"column of {path}", column, splits[0].column_names, " (options image, label)")
    with file_errors(Path(path), f"class numbers in the column {label}"):
        y = np.concatenate([np.asarray(list(split[label]), np.int64) for split in splits])
        classes = getattr(splits[0].features[label], "names", None) or numbered_names(y)
    x = LazyRows.all_of(SplitImages(path, splits, image, size, gray))
    test = np.arange(len(y)) >= len(splits[0]) if len(splits) == 2 else None
    note = f"{len(y):,} pictures of {path}, brought to {size} x {size} pixels"
    samples = Samples(x=x, y=y, time=np.zeros(len(y), np.int64))
    return Dataset("hf", samples, Classification(tuple(classes)), (note,), model="conv-2", test=test)


class SplitImages(DecodedImages):
    """The images of the splits of a dataset, one split after another."""

    def __init__(self, path: str, splits: Sequence[Any], column: str, size: int, gray: bool) -> None:
        super().__init__(sum(map(len, splits)), (size, size, 1 if gray else 3))
        self.path, self.splits, self.column, self.size, self.gray = path, splits, column, size, gray

    def decode(self, row: int) -> np.ndarray:
        first = len(self.splits[0])
        split, place = (self.splits[0], row) if row < first else (self.splits[1], row - first)
        with file_errors(Path(self.path), "pictures"):
            return images.to_square(split[place][self.column], self.size, self.gray)

    def signature(self) -> str:
        of = [split._fingerprint for split in self.splits]
        return f"{of} {self.column} {self.size} {self.gray} {files_signature([])}"


def _splits(path: str, config: str | None) -> list[Any]:
    """Return the training and the test split, or the only one."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra("reading Hugging Face datasets", "hf") from None
    folder = resolve(path)
    try:
        found = datasets.load_from_disk(str(folder)) if folder.is_dir() else datasets.load_dataset(path, config)
    except Exception as error:  # of many kinds: no network, no such dataset, a config to choose
        raise UserError(f"dataset 'hf': cannot read {path}: {' '.join(str(error).split())[:300]}") from error
    if not isinstance(found, Mapping):
        return [found]
    if "train" not in found:
        if len(found) > 1:
            raise UserError(f"dataset 'hf': {path} has the splits {', '.join(found)}, and none is called train")
        return list(found.values())
    return [found["train"], *(found[name] for name in TEST_SPLITS if name in found)][:2]
