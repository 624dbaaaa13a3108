"""Correctness of text answers: SQuAD's normalization, and several accepted answers in one text.

Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016. Answers
are equal if they are after these steps: lower case; delete ASCII punctuation; replace the words a, an and the by a
space; collapse white space. Typographic quotes and dashes stay.

The accepted answers of a sample are one text, joined by the control character "unit separator", because numpy, Parquet
and checkpoints store strings but no lists.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

SEPARATOR = "\x1f"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalize_answer(answer: str) -> str:
    """Return the part of an answer that is compared.

    >>> normalize_answer(" The Eiffel-Tower, in  PARIS!")
    'eiffeltower in paris'
    """
    return " ".join(_ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def join_answers(answers: Iterable[str]) -> str:
    """Return accepted answers as one text, without duplicates.

    >>> split_answers(join_answers(["Paris", "the city of Paris", "Paris"]))
    ('Paris', 'the city of Paris')
    """
    return SEPARATOR.join(dict.fromkeys(answer.replace(SEPARATOR, " ") for answer in answers))


def split_answers(y: str) -> tuple[str, ...]:
    """Return the accepted answers in a text; none if it is empty."""
    return tuple(y.split(SEPARATOR)) if y else ()


def matches(prediction: str, y: str) -> bool:
    """Return whether a normalized prediction is one of the accepted answers.

    >>> matches("U.S.", join_answers(["America", "us"]))
    True
    """
    return normalize_answer(prediction) in map(normalize_answer, split_answers(y))
