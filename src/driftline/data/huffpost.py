"""HuffPost: the section of a news headline, 2012 to 2022.

Misra, "News Category Dataset", 2022; the benchmark is Yao et al., "Wild-Time", NeurIPS 2022, with the 11 sections
that have headlines in every year from 2012 to 2018. Read are Wild-Time's pickle, the HDF5 file of Wild-Time-Data,
and the dataset itself, one JSON record per line. The first two know only the year of a headline and hold only the
11 sections; the records know the day. Headlines are in lower case, as in Wild-Time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats import json_lines, wild_time
from driftline.data.source import published
from driftline.errors import UserError, unknown_name
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

WILD_TIME = (
    *("BLACK VOICES", "BUSINESS", "COMEDY", "CRIME", "ENTERTAINMENT", "IMPACT", "QUEER VOICES", "SCIENCE"),
    *("SPORTS", "TECH", "TRAVEL"),
)
RECORDS = "News_Category_Dataset: one JSON record per line with headline, category and date"
STEMS = ("News_Category_Dataset_v3", "News_Category_Dataset_v2", "huffpost", "huffpost_2018-2022")
FILES = [f"{stem}{suffix}" for stem in STEMS for suffix in (".json", ".jsonl", ".json.gz", ".jsonl.gz")]
ADVICE = (
    "Get News_Category_Dataset_v3.json from Kaggle (rmisra/news-category-dataset), or huffpost.pkl as the Wild-Time "
    "repository (huaxiuyao/Wild-Time) describes, or huffpost.hdf5 with the package wild-time-data, and put it there"
)


@register("dataset", "huffpost")
@published(
    size="209,527 headlines, 2012 to 2022",
    license="CC BY 4.0",
    where=ADVICE,
    files=[*wild_time.file_names("huffpost"), *FILES, *(f"text/{name}" for name in FILES)],
)
def huffpost(
    folders: Sequence[Path],
    *,
    categories: list[str] | str = "wild-time",  # wild-time (its 11 sections), all, or a list of sections
    first: int = 2012,  # first year
    last: int = 2022,  # last year
    published_split: bool = False,  # use the test set of Wild-Time's files
) -> Dataset:
    """Headlines and their section.

    From records, time is the day and an id is the line, from 1; otherwise time is the year.
    """
    names = [*wild_time.file_names("huffpost"), *FILES, *(f"text/{name}" for name in FILES)]
    path = locate(folders, names, "huffpost", ADVICE)
    years = range(first, last + 1)
    if path.name in wild_time.file_names("huffpost"):
        samples, test = wild_time.read_texts(path, years, "headline", len(WILD_TIME))
        kept, classes = _chosen(samples, WILD_TIME, categories, path)
        marked = np.isin(kept.id, samples.id[test]) if published_split else None
    elif published_split:
        raise wild_time.no_split_error(path)
    else:
        samples, found = _from_records(path, years)
        kept, classes = _chosen(samples, found, categories, path)
        marked = None
    notes = [f"{len(kept):,} headlines of {path.name} in {len(classes)} sections, in lower case"]
    rest = len(samples) - len(kept)
    notes += [f"{rest:,} headlines of other sections are left out (option categories)"] if rest else []
    return Dataset("huffpost", kept, Classification(classes), tuple(notes), model="tfidf", test=marked)


def _from_records(path: Path, years: range) -> tuple[Samples, tuple[str, ...]]:
    x: list[str] = []
    sections: list[str] = []
    days: list[date] = []
    lines: list[int] = []
    with file_errors(path, RECORDS):
        for line, record in json_lines.iter_records(path):
            headline = json_lines.text_field(record, "headline", line)
            section = json_lines.text_field(record, "category", line, empty=False)
            day = json_lines.day_field(record, "date", line)
            if day.year in years:
                x.append(headline.lower())
                sections.append(section)
                days.append(day)
                lines.append(line)
    if not x:
        raise wild_time.no_data_error(path, RECORDS, "headline", years)
    names, y = np.unique(np.array(sections), return_inverse=True)
    time = json_lines.to_days(days)
    samples = Samples(x=x, y=y.astype(np.int64), id=np.array(lines), time=time)
    return samples[np.argsort(time, kind="stable")], tuple(str(name) for name in names)


def _chosen(
    samples: Samples, found: tuple[str, ...], categories: list[str] | str, path: Path
) -> tuple[Samples, tuple[str, ...]]:
    """Return the samples of the requested categories, and these as classes; `found` names the present labels."""
    if isinstance(categories, str):
        named = {"all": found, "wild-time": WILD_TIME}
        if categories not in named:
            raise unknown_name("set of categories", categories, named, "; or give a list of sections")
        classes = named[categories]
    else:
        classes = tuple(dict.fromkeys(categories))
        for name in classes:
            if name not in found:
                raise unknown_name(f"category in {path.name}", name, found)
    if len(classes) < 2:
        raise UserError(f"dataset 'huffpost' needs two categories or more, but was given {list(classes)}")
    index = np.array([classes.index(name) if name in classes else -1 for name in found])
    y = index[samples.y]
    kept = samples[np.flatnonzero(y >= 0)]
    if not len(kept):
        raise UserError(f"{path} has no headline of the sections {', '.join(classes)} (option categories)")
    return Samples(x=kept.x, y=y[y >= 0], id=kept.id, time=kept.time), classes
