"""Samples whose answers are texts, from several sets: one of them is upstream, the others are clusters.

An input is one text, its parts joined by an end-of-sentence mark, as in Lin et al., "On Continual Model Refinement in
Out-of-Distribution Data Streams", ACL 2022. As in its code, an input that occurs a second time is left out, and so is
one with a table in it. Which set a sample is of is its group, 0 being upstream. None has a time: all are at 0.

`text-to-text` reads plain records. The released files of that paper are such records too, with the answer ("mistake")
of the model that the authors started from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftline.data import Dataset, file_errors, locate_user_path
from driftline.data.formats import json_lines
from driftline.errors import UserError, unknown_name
from driftline.registry import register
from driftline.tasks import TextToText
from driftline.text_answers import join_answers
from driftline.types import JsonObject, Samples

SEPARATOR = " </s> "
TABLE_TAG = re.compile(r"<table\b|<td>", re.IGNORECASE)
RECORD_FORMAT = "one JSON record per line with 'input' and a list of accepted answers as 'output'"
STREAM_FORMAT = "a JSON list of time steps, each a list of records with 'input', 'truth' and 'id', or a list of such"
ANSWER_FIELDS = ("output", "outputs", "truth", "answers", "answer")


@dataclass(frozen=True)
class TextRecord:
    """One question of one set."""

    text: str
    answers: tuple[str, ...]
    id: str
    cluster: str
    train: bool | None = None
    """Whether it is of a part to train on; None if the file does not say."""
    published_answers: str | None = None
    """What the published model answered."""


Reader = Callable[[Path], Iterator[TextRecord]]


def parse_answers(value: object, context: str) -> tuple[str, ...]:
    """Return the accepted answers, at least one, from a text, a list of texts, or SQuAD's records with 'text'."""
    found = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = [one.get("text") if isinstance(one, dict) else one for one in found]
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(f"{str(value)[:40]!r} as the answers {context}, not one text or more")
    return tuple(text.strip() for text in texts if isinstance(text, str))


def parse_record(record: JsonObject, line: int, cluster: str) -> TextRecord:
    """Return a record with input and answers, and optional id, set and answer of a published model."""
    text = json_lines.text_field(record, "input", line, empty=False)
    field = next((name for name in ANSWER_FIELDS if name in record), ANSWER_FIELDS[0])
    published, name = record.get("mistake"), str(record.get("id", f"{cluster}-{line}"))
    return TextRecord(
        text.strip(),
        parse_answers(record.get(field), f"in line {line}"),
        name,
        str(record.get("data_name") or record.get("dataset") or cluster),
        train=record["split"] == "train" if "split" in record else None,
        published_answers=published if isinstance(published, str) else None,
    )


def read_records(path: Path) -> Iterator[TextRecord]:
    """Yield the records of a file with one per line."""
    for line, record in json_lines.iter_records(path):
        yield parse_record(record, line, stem(path))


def stem(path: Path) -> str:
    """Return a file's name without its suffixes.

    >>> stem(Path("qa/NewsQA.jsonl.gz"))
    'NewsQA'
    """
    return re.sub(r"(\.(jsonl|json|gz))+$", "", path.name)


def read_files(
    name: str, folders: Sequence[Path], files: Sequence[str], read: Reader, expected: str, advice: str
) -> list[TextRecord]:
    """Return the records of some files, each a path or a name in the data folders."""
    items: list[TextRecord] = []
    for file in files:
        path = locate_user_path(folders, file, name, advice)
        with file_errors(path, expected):
            items += read(path)
    if not items:
        raise UserError(f"dataset '{name}': nothing in {', '.join(files) or 'no file'}")
    return items


def build_dataset(
    name: str, items: Iterable[TextRecord], upstream: str | None = None, notes: Sequence[str] = ()
) -> Dataset:
    """Return records of several sets as one dataset, in order; by default the first record's set is upstream."""
    kept: dict[str, TextRecord] = {}
    dropped: Counter[str] = Counter()
    for item in items:
        why = "with a table in it" if TABLE_TAG.search(item.text) else "that came before" if item.text in kept else ""
        dropped[why] += 1
        if not why:
            kept[item.text] = item
    if not kept:
        raise UserError(f"dataset '{name}' has no input without a table in it")
    found = list(kept.values())
    clusters = _order_clusters([item.cluster for item in found], upstream)
    samples = to_samples(found, clusters)
    sizes = Counter(item.cluster for item in found)
    notes = [
        *notes,
        ", ".join(f"{cluster} {sizes[cluster]:,}" for cluster in clusters) + f"; upstream is {clusters[0]}",
    ]
    notes += [f"{n:,} inputs {why} are left out" for why, n in sorted(dropped.items()) if why]
    train = np.array([item.train is not False for item in found])
    published = np.array([item.published_answers for item in found], dtype=object)
    return Dataset(
        name,
        samples,
        TextToText(),
        tuple(notes),
        model="small-bart",
        test=~train if train.any() and not train.all() else None,
        clusters=clusters,
        published_answers=published if all(item.published_answers is not None for item in found) else None,
    )


def to_samples(items: Sequence[TextRecord], clusters: Sequence[str]) -> Samples:
    """Return records as samples; the group is the index of their set in `clusters`."""
    ids = Counter(item.id for item in items)
    return Samples(
        x=[item.text for item in items],
        y=np.array([join_answers(item.answers) for item in items], dtype=object),
        id=np.array([i.id if ids[i.id] == 1 else f"{i.cluster}/{i.id}" for i in items], dtype=object),
        time=np.zeros(len(items), np.int64),
        group=np.array([clusters.index(item.cluster) for item in items], np.int64),
    )


def read_released_stream(path: Path, name: str, upstream: str | None = None) -> tuple[Dataset, list[np.ndarray]]:
    """Return the distinct samples of a released stream, the first if there are several, and the rows of its steps."""
    with file_errors(path, STREAM_FORMAT):
        steps = read_streams(path)[0]
        distinct = {item.id: item for step in steps for item in step}
        if len({item.text for item in distinct.values()}) < len(distinct):
            raise ValueError("the same input under two ids")
        if any(TABLE_TAG.search(item.text) for item in distinct.values()):
            raise ValueError("an input with a table in it, which no dataset has here")
    dataset = build_dataset(name, distinct.values(), upstream, [f"{len(steps)} time steps of {path.name}"])
    row = {one: k for k, one in enumerate(dataset.samples.id)}
    return dataset, [np.array([row[item.id] for item in step], int) for step in steps]


def read_streams(path: Path) -> list[list[list[TextRecord]]]:
    """Return the records of each time step of each stream in a released file; records may repeat."""
    return parse_streams(json_lines.load_json(path))


def parse_streams(content: Sequence[Sequence[Any]]) -> list[list[list[TextRecord]]]:
    """Return the records of the streams in a list; one that has no inner list of steps is a stream itself."""
    first = next((item for part in content for item in part), None)
    streams = content if isinstance(first, list) else [content]
    return [
        [[parse_record(record, 1 + k, _set_of(record)) for record in step] for k, step in enumerate(steps)]
        for steps in streams
    ]


def distinct_records(content: Sequence[Sequence[Any]]) -> list[TextRecord]:
    """Return the records of all streams in a list, each id once."""
    return list({item.id: item for stream in parse_streams(content) for step in stream for item in step}.values())


def _set_of(record: JsonObject) -> str:
    """Return the set that an id such as mrqa_naturalquestions-validation-3095 begins with."""
    return str(record["id"]).removeprefix("mrqa_").split("-")[0]


def _order_clusters(of_items: Sequence[str], upstream: str | None) -> tuple[str, ...]:
    names = list(dict.fromkeys(of_items))
    first = next((n for n in names if upstream is None or n.lower() == upstream.lower()), None)
    if first is None:
        raise unknown_name("upstream set", str(upstream), names)
    return (first, *(n for n in names if n != first))


@register("dataset", "text-to-text")
def text_to_text(
    folders: Sequence[Path],
    *,
    files: list[str],  # names in the data folders, or paths
    upstream: str | None = None,  # the set that models are pretrained on; None: the first
) -> Dataset:
    """Inputs and accepted answers from JSON records, one set per file unless records name theirs as 'dataset'.

    Records have 'input' and 'output', a text or a list.
    """
    advice = "Give the files as paths, or as names of files in that folder"
    items = read_files("text-to-text", folders, files, read_records, RECORD_FORMAT, advice)
    return build_dataset("text-to-text", items, upstream)
