"""arXiv: the primary category of a paper from its title, 2007 to 2022.

The benchmark is Yao et al., "Wild-Time", NeurIPS 2022. Read are Wild-Time's pickle, the HDF5 file of
Wild-Time-Data, and Kaggle's arxiv-metadata-oai-snapshot.json, one record per line. The first two know only the
year of a paper and number its 172 categories without naming them; the snapshot knows the day, and its classes are
the first categories of its papers. Titles are in lower case, as in Wild-Time, and all are held in memory: two
million of them take about half a gigabyte.

Wild-Time dates a paper by its last change of any kind, which puts an old paper that was touched later among the
new. `date="created"` takes the day of the first version instead.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats import json_lines, wild_time
from driftline.data.source import published
from driftline.errors import UserError, unknown_name
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import JsonObject, Samples

CATEGORIES = 172
SNAPSHOT = "arxiv-metadata-oai-snapshot.json"
RECORDS = "Kaggle's arXiv snapshot: one JSON record per line with title, categories, update_date and versions"
ADVICE = (
    f"Get {SNAPSHOT} from Kaggle (Cornell-University/arxiv), or arxiv.pkl as the Wild-Time repository "
    "(huaxiuyao/Wild-Time) describes, or arxiv.hdf5 with the package wild-time-data, and put it there"
)


@register("dataset", "arxiv")
@published(
    size="2 million titles and more, 172 classes",
    license="CC0 (metadata)",
    where=ADVICE,
    files=[*wild_time.file_names("arxiv"), SNAPSHOT, f"{SNAPSHOT}.gz"],
)
def arxiv(
    folders: Sequence[Path],
    *,
    date: Literal["updated", "created"] = "updated",  # date of the latest or of the first version
    first: int = 2007,  # first year
    last: int = 2022,  # last year
    published_split: bool = False,  # use the test set of Wild-Time's files
) -> Dataset:
    """Titles and their primary category; from a snapshot, time is the day and an id is the line, from 1."""
    if date not in ("updated", "created"):
        raise unknown_name("date of a paper", str(date), ["updated", "created"])
    path = locate(folders, [*wild_time.file_names("arxiv"), SNAPSHOT, f"{SNAPSHOT}.gz"], "arxiv", ADVICE)
    years = range(first, last + 1)
    if path.name in wild_time.file_names("arxiv"):
        if date != "updated":
            raise UserError(f"{path} has no day of creation; date=created needs {SNAPSHOT}")
        samples, test = wild_time.read_texts(path, years, "title", CATEGORIES)
        classes = tuple(f"category {k}" for k in range(CATEGORIES))
    elif published_split:
        raise wild_time.no_split_error(path)
    else:
        samples, classes = _from_snapshot(path, years, date)
    note = f"{len(samples):,} titles of {path.name} in {len(classes)} categories, dated by when they were {date}"
    marked = test if published_split else None
    return Dataset("arxiv", samples, Classification(classes), (note,), model="hashed-ngrams", test=marked)


def _from_snapshot(path: Path, years: range, date: str) -> tuple[Samples, tuple[str, ...]]:
    x: list[str] = []
    primary: list[str] = []
    days: list[datetime.date] = []
    lines: list[int] = []
    with file_errors(path, RECORDS):
        for line, record in json_lines.iter_records(path):
            title, categories = (
                json_lines.text_field(record, "title", line),
                json_lines.text_field(record, "categories", line, empty=False),
            )
            day = _created(record, line) if date == "created" else json_lines.day_field(record, "update_date", line)
            if day.year in years:
                x.append(title.lower())
                primary.append(sys.intern(categories.split()[0]))
                days.append(day)
                lines.append(line)
    if not x:
        raise wild_time.no_data_error(path, RECORDS, "paper", years)
    classes = tuple(sorted(set(primary)))
    index = {name: k for k, name in enumerate(classes)}
    time = json_lines.to_days(days)
    samples = Samples(x=x, y=np.array([index[name] for name in primary]), id=np.array(lines), time=time)
    return samples[np.argsort(time, kind="stable")], classes


def _created(record: JsonObject, line: int) -> datetime.date:
    """Return the day of the first version, written as in an e-mail: Mon, 2 Apr 2007 19:18:42 GMT."""
    try:
        return parsedate_to_datetime(record["versions"][0]["created"]).date()
    except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(f"no date of the first of 'versions' in line {line}") from None
