"""A linear model on the TF-IDF of words.

The model's inputs are a list of strings. It learns its vocabulary and its weights from the training texts alone,
each time it is fitted, so that nothing about a later period leaks into it.
"""

from __future__ import annotations

import re
from functools import partial

from driftline.errors import UserError
from driftline.models.sklearn_models import SklearnModel, wrap_estimator
from driftline.registry import register
from driftline.seeds import Seed

WORD = re.compile(r"[\w']+")


def ngrams(text: str, max_n: int = 2) -> list[str]:
    """Return the words of a text in lower case, and its n-grams of up to `max_n` words; without any, one empty word.

    >>> ngrams("The sun, the SEA")
    ['the', 'sun', 'the', 'sea', 'the sun', 'sun the', 'the sea']
    >>> ngrams("?")
    ['']
    """
    words = WORD.findall(text.lower()) or [""]
    return [" ".join(words[i : i + n]) for n in range(1, max_n + 1) for i in range(len(words) - n + 1)]


def check_texts(model: str, shape: tuple[int, ...]) -> None:
    """Refuse inputs that have a shape, which a text has not."""
    if shape != ():
        raise UserError(f"{model} takes texts, and these inputs are numbers of shape {shape}: use mlp, for example")


@register("model", "tfidf")
def tfidf(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    C: float = 3.0,  # inverse strength of the L2 penalty
    ngram_max: int = 1,  # longest n-gram, in words
) -> SklearnModel:
    """Logistic regression on tf-idf weights of word n-grams (scikit-learn)."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    check_texts("tfidf", shape)
    counts = TfidfVectorizer(analyzer=partial(ngrams, max_n=ngram_max), sublinear_tf=True)
    return wrap_estimator(make_pipeline(counts, LogisticRegression(C=C, max_iter=1000)), outputs, seed)
