"""When a written answer is right: the normalisation of SQuAD, and several accepted answers in one text.

Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016. Two answers are the same if
they are after, in this order: lower case; ASCII punctuation deleted, not made a space; the whole words a, an and the
made a space; white space collapsed. Typographic quotes and dashes stay.

A sample may accept several answers. They travel as one text, joined by the control character "unit separator", which
no text of a dataset holds: such a text survives numpy, Parquet and a checkpoint, which keep strings but no lists.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

SEPARATOR = "\x1f"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalize_answer(answer: str) -> str:
    """What is compared of an answer.

    >>> normalize_answer(" The Eiffel-Tower, in  PARIS!")
    'eiffeltower in paris'
    """
    return " ".join(_ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def join_answers(answers: Iterable[str]) -> str:
    """Accepted answers as one text, the first of them first, each once.

    >>> split_answers(join_answers(["Paris", "the city of Paris", "Paris"]))
    ('Paris', 'the city of Paris')
    """
    return SEPARATOR.join(dict.fromkeys(answer.replace(SEPARATOR, " ") for answer in answers))


def split_answers(y: str) -> tuple[str, ...]:
    """The accepted answers in a text, of which there may be one; none in an empty text."""
    return tuple(y.split(SEPARATOR)) if y else ()


def matches(prediction: str, y: str) -> bool:
    """Whether a prediction is, normalised, one of the accepted answers.

    >>> matches("U.S.", join_answers(["America", "us"]))
    True
    """
    said = normalize_answer(prediction)
    return any(said == normalize_answer(answer) for answer in split_answers(y))
