"""Yearbook: is a portrait from an American high-school yearbook of a man or of a woman, 1930 to 2013.

Ginosar et al., "A Century of Portraits", 2015; the benchmark is Yao et al., "Wild-Time", NeurIPS 2022. The first
of four standard files that is found is read: Wild-Time's pickle, the HDF5 file of the Wild-Time-Data
package, the portraits as published, and a small npz. The first two have a split, which is kept if `published_split`
says so; they give the same samples in the same order, the training part of a year before its test part.

The portraits themselves are taken in order of their names, men first, and shrunk bilinearly. Wild-Time shrank
them with a Lanczos filter and took them in the order of its file system, so their pixels differ slightly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats import images as pictures
from driftline.data.formats import wild_time
from driftline.data.source import NOT_STATED, published
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

SIZE = 32
PORTRAITS = "faces_aligned_small_mirrored_co_aligned_cropped_cleaned"
ADVICE = (
    "Get yearbook.pkl as the Wild-Time repository (huaxiuyao/Wild-Time) describes, or yearbook.hdf5 with the "
    "package wild-time-data, or unpack the portraits of 'A Century of Portraits', and put it there"
)
Part = tuple[int, object, object, int | None]
"""A year, its images, their labels, and how many of them are to train on, if the file says so."""


@register("dataset", "yearbook")
@published(
    size="37,921 gray portraits, 1905 to 2013, 2 classes",
    license=NOT_STATED,
    where=ADVICE,
    files=("yearbook.*", PORTRAITS, "yearbook_32x32.npz"),
)
def yearbook(
    folders: Sequence[Path],
    *,
    first: int = 1930,  # first year
    last: int = 2013,  # last year
    published_split: bool = False,  # use the test set of Wild-Time's files
) -> Dataset:
    """Portraits of 32 x 32 gray pixels; time is the year, an id is the year times 100,000 plus a count."""
    path = locate(folders, list(READERS), "yearbook", ADVICE)
    form, read = READERS[path.name]
    years = range(first, last + 1)
    with file_errors(path, form):
        parts = [(year, _gray(images), _labels(labels), n) for year, images, labels, n in read(path, years)]
        parts.sort(key=lambda part: part[0])
        for year, images, labels, _ in parts:
            if len(images) != len(labels):
                raise ValueError(f"{len(images)} images but {len(labels)} labels in {year}")
    if not sum(len(labels) for _, _, labels, _ in parts):
        raise UserError(f"{path}: expected {form}, but found no portrait from {first} to {last} (options first, last)")
    samples = Samples(
        x=np.concatenate([images for _, images, _, _ in parts]),
        y=np.concatenate([labels for _, _, labels, _ in parts]),
        id=np.concatenate([year * 100_000 + np.arange(len(labels)) for year, _, labels, _ in parts]),
        time=np.concatenate([np.full(len(labels), year) for year, _, labels, _ in parts]),
    )
    kept = "used" if published_split else "not used"
    note = f"{len(samples):,} portraits from {form} ({path.name}); a split in the file is {kept}"
    test = _test_parts(path, parts) if published_split else None
    return Dataset("yearbook", samples, Classification(("M", "F")), (note,), model="yearbook-cnn", test=test)


def _test_parts(path: Path, parts: Sequence[tuple[int, np.ndarray, np.ndarray, int | None]]) -> np.ndarray:
    """Return which samples are not to train on."""
    masks = [np.arange(len(labels)) >= n for _, _, labels, n in parts if n is not None]
    if not masks:
        raise wild_time.no_split_error(path)
    return np.concatenate(masks)


def _from_pickle(path: Path, years: range) -> Iterator[Part]:
    content = wild_time.read_pickle(path, "Wild-Time's yearbook.pkl")
    for year in years:
        if year in content:
            train, test = content[year][0], content[year][1]  # 2 is both together, in another order
            images, labels = (_concat(train[name], test[name]) for name in ("images", "labels"))
            yield year, images, labels, len(train["labels"])


def _from_hdf5(path: Path, years: range) -> Iterator[Part]:
    with bounded_files.open_hdf5(path) as file:
        for year in years:
            if str(year) in file:
                images, labels = (
                    [bounded_files.hdf5_member(file, str(year), part, name) for part in ("train", "test")]
                    for name in ("images", "labels")
                )
                yield year, _concat(*images), _concat(*labels), len(labels[0])


def _from_portraits(path: Path, years: range) -> Iterator[Part]:
    def pixels(file: Path) -> np.ndarray:
        with file_errors(file, "a PNG image"), pictures.open_image(file) as image:
            return np.asarray(image.convert("L").resize((SIZE, SIZE), pictures.pil_image_module().Resampling.BILINEAR))

    by_year: dict[int, list[tuple[Path, int]]] = {}
    for label, sex in enumerate("MF"):
        for file in sorted((path / sex).iterdir()):
            named = re.match(r"(\d{4})_.*\.png$", file.name)
            if named and int(named[1]) in years:
                by_year.setdefault(int(named[1]), []).append((file, label))
    for year, portraits in by_year.items():
        yield year, np.stack([pixels(file) for file, _ in portraits]), [label for _, label in portraits], None


def _from_npz(path: Path, years: range) -> Iterator[Part]:
    content = bounded_files.read_npz(path)
    images, year, gender = content["images"], content["year"], content["gender"]
    if not len(images) == len(year) == len(gender):
        raise ValueError(f"{len(images)} images, {len(year)} years, {len(gender)} genders")
    for one in np.unique(year):
        if int(one) in years:
            yield int(one), images[year == one], gender[year == one], None


def _concat(train: object, test: object) -> np.ndarray:
    return np.concatenate([np.asarray(train), np.asarray(test)])


def _gray(images: object) -> np.ndarray:
    """Return bytes of shape (n, 32, 32, 1) from values in 0..1 or 0..255, with no, one or three equal channels."""
    images = np.asarray(images)
    if images.ndim == 4 and images.shape[3] in (1, 3):
        if (images != images[..., :1]).any():
            raise ValueError("colors, where gray was expected")
        images = images[..., 0]
    if images.shape[1:] != (SIZE, SIZE):
        raise ValueError(f"images of shape {images.shape[1:]}")
    top = 1 if images.dtype.kind == "f" else 255
    if images.dtype.kind not in "fui" or not ((images >= 0) & (images <= top)).all():
        raise ValueError(f"pixels of type {images.dtype} that are not all from 0 to {top}")
    return np.asarray(np.rint(images * (255 // top)), np.uint8)[..., np.newaxis]


def _labels(labels: object) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or not np.isin(labels, (0, 1)).all():
        raise ValueError("labels other than 0 (M) and 1 (F)")
    return np.asarray(labels, np.int64)


READERS: dict[str, tuple[str, Callable[[Path, range], Iterator[Part]]]] = {
    "yearbook.pkl": ("Wild-Time's pickle", _from_pickle),
    "yearbook.hdf5": ("the HDF5 file of Wild-Time-Data", _from_hdf5),
    "yearbook.hdf": ("the HDF5 file of Wild-Time-Data", _from_hdf5),
    "yearbook.h5": ("the HDF5 file of Wild-Time-Data", _from_hdf5),
    PORTRAITS: ("the portraits as published", _from_portraits),
    "yearbook_32x32.npz": ("an npz with images, year and gender", _from_npz),
}
