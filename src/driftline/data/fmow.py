"""FMoW-Time: land use in satellite images, 2002 to 2017.

Christie et al., "Functional Map of the World", CVPR 2018; Koh et al., "WILDS", ICML 2021; the benchmark is Yao et
al., "Wild-Time", NeurIPS 2022. Read are Wild-Time's pickle, which lists pictures of WILDS' folder
`fmow_v1.1/images` beside it; the HDF5 file that the converter of Wild-Time-Data makes of both; and WILDS' folder alone,
by its `rgb_metadata.csv`. The first two give the same samples in the same order. The third gives the pictures of WILDS'
out-of-distribution split, which are the same ones, in the order of that table, so that a random split is another one.

Wild-Time's DenseNet-121 is trained on the originals, of 224 pixels a side. Pictures are read and shrunk when they are
needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats import images, wild_time
from driftline.data.formats.decoded_images import image_files
from driftline.data.source import published
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.lazy_rows import LazyRows
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

START = 2002  # the year that the files call 0
TABLE = "fmow_v1.1/rgb_metadata.csv"
FORMS = {**wild_time.file_names("fmow"), TABLE: f"WILDS' {TABLE}"}
FIRST_YEAR_OF_SPLIT = {"train": 2002, "val": 2013, "test": 2016}  # of WILDS: each split has the years up to the next
FOLDERS = ("fmow_v1.1/images", "images")
NAMES = (
    "airport airport_hangar airport_terminal amusement_park aquaculture archaeological_site barn border_checkpoint "
    "burial_site car_dealership construction_site crop_field dam debris_or_rubble educational_institution "
    "electric_substation factory_or_powerplant fire_station flooded_road fountain gas_station golf_course "
    "ground_transportation_station helipad hospital impoverished_settlement interchange lake_or_pond lighthouse "
    "military_facility multi-unit_residential nuclear_powerplant office_building oil_or_gas_facility park "
    "parking_lot_or_garage place_of_worship police_station port prison race_track railway_bridge "
    "recreational_facility road_bridge runway shipyard shopping_mall single-unit_residential smokestack solar_farm "
    "space_facility stadium storage_tank surface_mine swimming_pool toll_booth tower tunnel_opening waste_disposal "
    "water_treatment_facility wind_farm zoo"
)
CLASSES = tuple(NAMES.split())
ADVICE = (
    "Get fmow.pkl as the Wild-Time repository (huaxiuyao/Wild-Time) describes and unpack WILDS' fmow_v1.1 beside it, "
    "or unpack fmow_v1.1 alone, or make fmow.hdf5 with the converter of wistuba/Wild-Time-Data, and put it there"
)


@register("dataset", "fmow")
@published(
    size="118,886 satellite images of 62 classes, 2002 to 2017, 55 GB",
    license="FMoW Challenge Public License",
    where=ADVICE,
    files=list(FORMS),
)
def fmow(
    folders: Sequence[Path],
    *,
    size: int = 64,  # height and width of the images in pixels
    first: int = 2002,  # first year
    last: int = 2017,  # last year
    published_split: bool = False,  # use the test set of the file
) -> Dataset:
    """Satellite pictures of `size` x `size` pixels; time is the year, an id the year times a million plus a count."""
    images.check_size(size)
    path = locate(folders, list(FORMS), "fmow", ADVICE)
    form = FORMS[TABLE if path.suffix == ".csv" else path.name]
    years = range(max(first, START), min(last, START + 15) + 1)
    with file_errors(path, form):
        y, time, ids, test = _listed(path, years)
        if not len(y):
            raise wild_time.no_data_error(path, form, "picture", range(first, last + 1))
        x = _files(path, years, size) if path.suffix in (".pkl", ".csv") else _hdf5_images(path, years, size)
    if published_split and not test.any():
        raise UserError(f"{form} ({path.name}) has no test parts: leave data.published_split out")
    samples = Samples(x=x, y=y, id=ids, time=time)
    used = "used" if published_split else "not used"
    note = f"{len(samples):,} pictures from {form} ({path.name}), shrunk to {size} x {size}; a split in it is {used}"
    marked = test if published_split else None
    return Dataset("fmow", samples, Classification(CLASSES), (note,), model="yearbook-cnn", test=marked)


def _parts(path: Path, years: range) -> Iterator[wild_time.Part]:
    if path.suffix == ".csv":
        return _wilds_parts(path, years)
    return wild_time.read_steps(path, [year - START for year in years], "image_idxs", "labels", len(CLASSES))


def _wilds_parts(path: Path, years: range) -> Iterator[wild_time.Part]:
    """Yield the rows of WILDS' table by year; a picture's number is its row, those of the split `seq` included."""
    with bounded_files.open_file(path) as content:
        table = pd.read_csv(content, usecols=["split", "category", "timestamp"], dtype=str, keep_default_na=False)
    year = table["timestamp"].str[:4].astype(int)
    since = year.map(lambda y: max((s for s in FIRST_YEAR_OF_SPLIT.values() if s <= y), default=0))
    label = table["category"].map({name: k for k, name in enumerate(CLASSES)})
    used = table["split"].map(FIRST_YEAR_OF_SPLIT) == since
    if label[used].isna().any():
        raise ValueError(f"the category {table['category'][used & label.isna()].iloc[0]!r}, which is not FMoW's")
    for one in years:
        rows = np.flatnonzero(used & (year == one))
        if len(rows):
            yield one - START, [rows, rows[:0]], label.to_numpy()[rows].astype(np.int64)


def _listed(path: Path, years: range) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the label, the year and the id of every picture, and whether it is of a test part."""
    y, time, ids = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    test = [np.zeros(0, bool)]
    for step, both, labels in _parts(path, years):
        y.append(labels)
        time.append(np.full(len(labels), START + step))
        ids.append((START + step) * wild_time.ID_STRIDE + np.arange(len(labels)))
        test.append(np.arange(len(labels)) >= len(both[0]))
    return np.concatenate(y), np.concatenate(time), np.concatenate(ids), np.concatenate(test)


def _files(path: Path, years: range, size: int) -> LazyRows:
    """Return the pictures in the same order, which a pickle or a table names by number."""
    names = np.array([f"rgb_img_{int(k)}.png" for _, both, _ in _parts(path, years) for part in both for k in part])
    return image_files(_folder(path), names, partial(images.read_image, size=size), (size, size, 3))


def _hdf5_images(path: Path, years: range, size: int) -> LazyRows:
    """Return the pictures of an HDF5 file in the same order."""
    members = [(part.name, len(part)) for _, both, _ in _parts(path, years) for part in both]
    return LazyRows.all_of(wild_time.Hdf5Images(path, members, size))


def _folder(path: Path) -> Path:
    for name in FOLDERS:
        if os.path.isdir(path.parent / name):
            return path.parent / name
    raise UserError(
        f"{path} names pictures by number, and there is no folder {' or '.join(FOLDERS)} with them in {path.parent}: "
        "unpack WILDS' fmow_v1.1 there"
    )
