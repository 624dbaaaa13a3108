"""Exact match and token F1 of text answers, after SQuAD's normalization.

Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016. Where several answers are
accepted (`driftline.text_answers.join_answers`) the best of them counts; where none is, nothing is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from driftline.text_answers import matches, normalize_answer, split_answers


def exact_match(predictions: Sequence[str] | np.ndarray, y: Sequence[str] | np.ndarray) -> np.ndarray:
    """Return 1 where a prediction is one of the accepted answers, 0 elsewhere. Higher is better.

    >>> exact_match(["the Nile", "Nil"], ["Nile", "Nile"]).tolist()
    [1.0, 0.0]
    """
    return np.array([float(matches(answer, truth)) for answer, truth in zip(predictions, y, strict=True)], float)


def token_f1(predictions: Sequence[str] | np.ndarray, y: Sequence[str] | np.ndarray) -> np.ndarray:
    """Return 2 P R / (P + R) on bags of normalized words, the best over the accepted answers. Higher is better.

    >>> token_f1(["new york city", "york new"], ["new york", "new york"]).round(3).tolist()
    [0.8, 1.0]
    """
    best = [
        max((_f1(prediction, answer) for answer in split_answers(truth)), default=0.0)
        for prediction, truth in _pairs(predictions, y)
    ]
    return np.array(best, float)


def _pairs(predictions: Sequence[str] | np.ndarray, y: Sequence[str] | np.ndarray) -> list[tuple[str, str]]:
    return [(str(answer), str(truth)) for answer, truth in zip(predictions, y, strict=True)]


def _f1(prediction: str, answer: str) -> float:
    """Return the F1 of two answers: 0 without a common word, also if neither has a word, as in SQuAD's script."""
    words, truth = normalize_answer(prediction).split(), normalize_answer(answer).split()
    common = (Counter(words) & Counter(truth)).total()
    return 2 * common / (len(words) + len(truth)) if common else 0.0
