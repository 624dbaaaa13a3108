"""CLINC150: 150 intents with 150 queries to an assistant each, without a time.

Larson et al., "An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction", EMNLP 2019. It reads a
JSON file with lists of [query, intent] under train, val and test. Out-of-scope queries and repeated queries are
left out. The queries of the part `test` are the official test set. An id is the part and the position in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats import json_lines
from driftline.data.source import published
from driftline.errors import UserError
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

PARTS = ("train", "val", "test")
EXPECTED = "CLINC150: a JSON object with lists of [query, intent] under train, val and test"
FILES = [f"{place}{name}" for place in ("intents/", "") for name in ("clinc150_data_full.json", "data_full.json")]
ADVICE = "Get data_full.json from github.com/clinc/oos-eval (folder data) and put it there"


class Query(NamedTuple):
    """A query, its intent, and its position in the file."""

    text: str
    intent: str
    part: str
    position: int

    @property
    def id(self) -> str:
        return f"{self.part}-{self.position}"


@register("dataset", "clinc150")
@published(size="22,500 queries of 150 intents", license="CC BY 3.0", where=ADVICE, files=FILES)
def clinc150(folders: Sequence[Path]) -> Dataset:
    """Queries and their intents, which are the classes."""
    path = locate(folders, FILES, "clinc150", ADVICE)
    found, again = read_queries(path)
    names = sorted({query.intent for query in found})
    place = {name: k for k, name in enumerate(names)}
    samples = Samples(
        x=[query.text for query in found],
        y=np.array([place[query.intent] for query in found], np.int64),
        id=np.array([query.id for query in found], dtype=object),
        time=np.zeros(len(found), np.int64),
    )
    test = np.array([query.part == "test" for query in found])
    notes = [f"{len(found):,} queries of {len(names)} intents in {path.name}; those out of scope are left out"]
    notes += [f"{again:,} queries that came before are left out"] if again else []
    marked = test if test.any() and not test.all() else None
    return Dataset("clinc150", samples, Classification(tuple(names)), tuple(notes), "hashed-ngrams", test=marked)


def read_queries(path: Path) -> tuple[list[Query], int]:
    """Return the distinct queries of all parts, and the number of repeated ones that are left out."""
    found: dict[str, Query] = {}
    total = 0
    with file_errors(path, EXPECTED):
        content = json_lines.load_json(path)
        for part in PARTS:
            for k, (text, intent) in enumerate(content[part], 1):
                _check_texts(text, intent, f"entry {k} of {part}")
                found.setdefault(text, Query(text, intent, part, k))
            total += len(content[part])
    if not found:
        raise UserError(f"{path} has no queries")
    return list(found.values()), total - len(found)


def _check_texts(text: object, intent: object, entry: str) -> None:
    for what, given in (("query", text), ("intent", intent)):
        if not isinstance(given, str) or not given.strip():
            raise ValueError(f"{given!r} as the {what} in {entry}, not a text")
