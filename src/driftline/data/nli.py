"""Whether one sentence follows from another: entailment, neutral or contradiction, from several sets.

Bowman et al., "A large annotated corpus for learning natural language inference", EMNLP 2015 (SNLI). Read are pairs,
one JSON record per line, with the field names and label words of SNLI, MultiNLI, SciTail and ANLI; and the released
files of continual model refinement, in which the labels that may be given stand at the end of the input: of its streams
(.json) every pair is taken once. Pairs on which annotators did not agree (label "-" or -1) are left out. By default the
label is written, as in that paper; `answers="classes"` asks for one of the three instead, so that any text classifier
can be used.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from driftline.data import Dataset
from driftline.data.formats import json_lines
from driftline.data.source import published
from driftline.data.text_to_text import (
    SEPARATOR,
    STREAM_FORMAT,
    TextRecord,
    build_dataset,
    distinct_records,
    parse_record,
    read_files,
    stem,
)
from driftline.errors import UserError
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import JsonObject

LABELS = ("entailment", "neutral", "contradiction")  # in the order of their numbers in SNLI and its successors
LABEL_ALIASES = {"entails": "entailment", "e": "entailment", "n": "neutral", "c": "contradiction"}
NO_LABEL = ("-", "-1", "")
RELEASED_FILES = ("cmr_nli_upstream_eval.jsonl.gz", "cmr_nli_heldout_eval.jsonl.gz")
EXPECTED = (
    "one JSON record per line with 'premise', 'hypothesis' and 'label', or with 'input' and 'truth'; "
    f"or {STREAM_FORMAT}"
)
ADVICE = (
    "Get SNLI (nlp.stanford.edu/projects/snli) and MultiNLI (cims.nyu.edu/~sbowman/multinli), put their .jsonl files "
    "there and name them in the option files, the upstream one first"
)


@register("dataset", "nli")
@published(
    size="by file",
    license="SNLI CC BY-SA 4.0, MultiNLI by genre",
    where=ADVICE,
    files=("nli/cmr_*.gz", "snli_1.0_*.jsonl", "multinli_1.0_*.jsonl"),
)
def nli(
    folders: Sequence[Path],
    *,
    files: list[str] | str | None = None,  # names in the data folders, or paths; None: the released evaluation files
    upstream: str | None = None,  # the set that models are pretrained on; None: the first
    answers: Literal["text", "classes"] = "text",  # answer with a text, or with one of three classes
) -> Dataset:
    """Pairs of sentences; each file's set is a cluster, or each set that its records name."""
    if answers not in ("text", "classes"):
        raise UserError(f"dataset 'nli': answers={answers!r}, but it must be text or classes")
    names = [files] if isinstance(files, str) else files or _default(folders)
    dataset = build_dataset("nli", read_files("nli", folders, names, read_pairs, EXPECTED, ADVICE), upstream)
    return dataset if answers == "text" else as_classes(dataset)


def read_pairs(path: Path) -> Iterator[TextRecord]:
    """Yield the pairs in a file; those of a stream once each."""
    if ".json" in path.suffixes:
        yield from distinct_records(json_lines.load_json(path))
        return
    for line, record in json_lines.iter_records(path):
        item = parse_record(record, line, stem(path)) if "input" in record else _pair(record, line, stem(path))
        if item is not None:
            yield item


def join_pair(premise: str, hypothesis: str) -> str:
    """Return a pair as one input.

    >>> join_pair("It rains.", "It is wet.")
    'Premise: It rains. </s> Hypothesis: It is wet. | Options: entailment, neutral, contradiction'
    """
    return f"Premise: {premise.strip()}{SEPARATOR}Hypothesis: {hypothesis.strip()} | Options: {', '.join(LABELS)}"


def as_classes(dataset: Dataset) -> Dataset:
    """Return the same pairs with one of three classes as the answer; a published answer that is not a label is -1."""
    samples = dataset.samples
    strange = next((word for word in samples.y if word not in LABELS), None)
    if strange is not None:
        raise UserError(f"dataset 'nli': {strange!r} is not one of the labels {', '.join(LABELS)}: use answers=text")
    y = np.array([LABELS.index(word) for word in samples.y], np.int64)
    published = dataset.published_answers
    if published is not None:
        published = np.array([LABELS.index(word) if word in LABELS else -1 for word in published], np.int64)
    samples = dataclasses.replace(samples, y=y)
    return dataclasses.replace(
        dataset, samples=samples, task=Classification(LABELS), published_answers=published, model="tfidf"
    )


def _pair(record: JsonObject, line: int, cluster: str) -> TextRecord | None:
    premise, hypothesis = (
        json_lines.text_field(record, next((n for n in names if n in record), names[0]), line)
        for names in (("premise", "sentence1", "context"), ("hypothesis", "sentence2"))
    )
    raw = record.get("gold_label", record.get("label"))
    if str(raw).strip() in NO_LABEL:
        return None
    name = next((str(record[n]) for n in ("id", "uid", "pairID") if n in record), f"{cluster}-{line}")
    return TextRecord(join_pair(premise, hypothesis), (_label(raw, line),), name, str(record.get("dataset") or cluster))


def _label(raw: object, line: int) -> str:
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < len(LABELS):
        return LABELS[raw]
    word = LABEL_ALIASES.get(str(raw).strip().lower(), str(raw).strip().lower())
    if word not in LABELS:
        raise ValueError(f"{raw!r} as the label in line {line}, not one of {', '.join(LABELS)}")
    return word


def _default(folders: Sequence[Path]) -> list[str]:
    for folder in folders:
        for place in ("nli", "."):
            if all(os.path.exists(folder / place / name) for name in RELEASED_FILES):
                return [f"{place}/{name}" for name in RELEASED_FILES]
    looked = ", ".join(str(folder) for folder in folders)
    raise UserError(f"dataset 'nli' not found: not all of {', '.join(RELEASED_FILES)} in {looked}. {ADVICE}")
