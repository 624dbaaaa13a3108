"""Questions about a text, answered in the text's own words, from several sets.

Read are files of MRQA (Fisch et al., "MRQA 2019 Shared Task", 2019): a header line, then per line a context with its
questions; SQuAD's JSON (Rajpurkar et al., EMNLP 2016); one question per line with 'question', 'context' and 'answers';
and the released files of continual model refinement, of whose streams (.json) every question is taken once. An input is
the question, then the context.

MRQA's texts are cleaned as those of Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams",
ACL 2022, so that inputs equal those of its released files: tags of paragraphs and lists, line ends and tabs are
removed, a question ends in a question mark, and an answer stands once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from driftline.data import Dataset
from driftline.data.formats import json_lines
from driftline.data.source import published
from driftline.data.text_to_text import (
    SEPARATOR,
    STREAM_FORMAT,
    TextRecord,
    build_dataset,
    distinct_records,
    parse_answers,
    parse_record,
    read_files,
    stem,
)
from driftline.errors import UserError
from driftline.registry import register
from driftline.types import JsonObject

MARKUP = re.compile(r"</?(?:P|Li|Ul)>|\[(?:DOC|TLE|PAR|SEP)\]|[\n\t]")
SUBSET_FILES = ("qa/mrqa_subset.jsonl.gz", "mrqa_subset.jsonl.gz")
EXPECTED = (
    "MRQA (a header, then per line a context with 'qas'), SQuAD's JSON, one record per line with 'question', "
    f"'context' and 'answers', or {STREAM_FORMAT}"
)
ADVICE = (
    "Get MRQA's files, such as SQuAD.jsonl.gz and NewsQA.jsonl.gz, as its repository (mrqa/MRQA-Shared-Task-2019) "
    "describes, put them there and name them in the option files, the upstream one first"
)


@register("dataset", "qa")
@published(size="by file", license="by set (CC BY-SA 4.0 and others)", where=ADVICE, files=SUBSET_FILES)
def qa(
    folders: Sequence[Path],
    *,
    files: list[str] | str | None = None,  # names in the data folders, or paths; None: mrqa_subset.jsonl.gz
    upstream: str | None = None,  # the set that models are pretrained on; None: the first
) -> Dataset:
    """Extractive questions; each file's set is a cluster, or each set that its records name."""
    names = [files] if isinstance(files, str) else files or [_default(folders)]
    return build_dataset("qa", read_files("qa", folders, names, read_questions, EXPECTED, ADVICE), upstream)


def read_questions(path: Path) -> Iterator[TextRecord]:
    """Yield the questions in a file of any of these formats; raise ValueError if it is malformed."""
    if ".json" in path.suffixes:
        content = json_lines.load_json(path)
        yield from distinct_records(content) if isinstance(content, list) else _squad(content, stem(path))
        return
    cluster, train = stem(path), None
    for line, record in json_lines.iter_records(path):
        header = record.get("header")
        if isinstance(header, dict):
            cluster = str(header.get("dataset", cluster))
            train = str(header["split"]).lower() == "train" if "split" in header else None
        elif "qas" in record:
            yield from _questions(record, f"in line {line}", cluster, train, clean=True)
        elif "input" in record:
            yield parse_record(record, line, cluster)
        else:
            yield _flat(record, line, cluster)


def _squad(content: JsonObject, cluster: str) -> Iterator[TextRecord]:
    """Yield the questions in SQuAD's JSON, without those marked as impossible to answer."""
    for article in content["data"]:
        for k, paragraph in enumerate(article["paragraphs"], 1):
            place = f"in paragraph {k} of '{article.get('title', '')}'"
            possible = [one for one in paragraph["qas"] if not one.get("is_impossible")]
            yield from _questions({**paragraph, "qas": possible}, place, cluster, None)


def join_question(question: str, context: str) -> str:
    """Return a question and its context as one input.

    >>> join_question("who ?", "Ann was here .")
    'Question: who ? </s> Context: Ann was here .'
    """
    return f"Question: {question.strip()}{SEPARATOR}Context: {context.strip()}"


def remove_markup(text: str) -> str:
    """Return a text without MRQA's tags, line ends and tabs.

    >>> remove_markup("[TLE] Rome [PAR]<P> It is old .</P>\\n")
    'Rome  It is old .'
    """
    return MARKUP.sub("", text).strip()


def _questions(
    record: JsonObject, place: str, cluster: str, train: bool | None, clean: bool = False
) -> Iterator[TextRecord]:
    context = record.get("context")
    if not isinstance(context, str) or not context.strip():
        raise ValueError(f"{str(context)[:40]!r} as 'context' {place}, not a text")
    text = remove_markup(context) if clean else context
    for one in record["qas"]:
        question, name = one.get("question"), str(one.get("qid", one.get("id", "")))
        if not isinstance(question, str) or not name:
            raise ValueError(f"a question {place} without 'question' or 'qid'")
        answers = parse_answers(one.get("answers"), f"to question {name} {place}")
        if clean:
            question = remove_markup(question)
            question += "" if question.endswith("?") else " ?"
            answers = tuple(dict.fromkeys(remove_markup(answer) for answer in answers))
        yield TextRecord(join_question(question, text), answers, name, cluster, train)


def _flat(record: JsonObject, line: int, cluster: str) -> TextRecord:
    text = join_question(
        json_lines.text_field(record, "question", line, empty=False),
        json_lines.text_field(record, "context", line, empty=False),
    )
    published = record.get("bart_base_prediction")
    return TextRecord(
        text,
        parse_answers(record.get("answers"), f"in line {line}"),
        str(record.get("id", f"{cluster}-{line}")),
        str(record.get("dataset") or cluster),
        train=record["split"] == "train" if "split" in record else None,
        published_answers=published if isinstance(published, str) else None,
    )


def _default(folders: Sequence[Path]) -> str:
    for folder in folders:
        for name in SUBSET_FILES:
            if os.path.exists(folder / name):
                return name
    looked = ", ".join(str(folder) for folder in folders)
    raise UserError(f"dataset 'qa' not found: none of {', '.join(SUBSET_FILES)} in {looked}. {ADVICE}")
