"""A network on hashed words, which every method that trains networks can use.

It has no vocabulary that could know the future: a hash that never changes says which row of its table a word or a
pair of words has (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009). The rows of a
text are summed, over the root of their number, and go through a small perceptron. Joulin et al., "Bag of Tricks for
Efficient Text Classification", EACL 2017, take the mean and have no hidden layer.

A network says with `encode` how texts become its tensor. Here that is the numbers of the rows, which stay exact as
the single-precision floats that every network takes; they are names, not quantities, so inputs that a method
has mixed are refused.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.models.preprocessing import register_network
from driftline.models.text.tfidf import check_texts, ngrams
from driftline.types import Inputs

MAX_BUCKETS = 2**24  # whole numbers up to here are exact in single precision
INIT_STD = 0.03  # the deviation of initial rows; larger ones drown what a few updates teach


class HashedNgrams(nn.Module):
    """The scaled sum of the rows of a text's n-grams, a hidden layer (so far `features`), one linear layer (`head`)."""

    def __init__(self, outputs: int, buckets: int, width: int, ngram_max: int, max_ngrams: int) -> None:
        super().__init__()
        self.buckets, self.ngram_max, self.max_ngrams = buckets, ngram_max, max_ngrams
        self.table = nn.Embedding(buckets, width, padding_idx=0)
        nn.init.normal_(self.table.weight[1:].detach(), std=INIT_STD)
        self.hidden = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, outputs)

    def encode(self, x: Inputs) -> Tensor:
        """Return the rows of each text's first `max_ngrams` n-grams, from 1, then zeros; a tensor does not change."""
        if isinstance(x, Tensor):
            return x
        texts = [[self._row(gram) for gram in ngrams(text, self.ngram_max)[: self.max_ngrams]] for text in x]
        rows = np.zeros((len(texts), max(map(len, texts), default=1)), np.int32)
        for row, text in zip(rows, texts, strict=True):
            row[: len(text)] = text
        return torch.from_numpy(rows)

    def _features(self, x: Tensor) -> Tensor:
        """Return the inputs of the head."""
        rows = x.long()
        if (rows != x).any():
            raise UserError("hashed-ngrams cannot take inputs that were mixed: use a method that leaves inputs alone")
        known = (rows > 0).sum(1, keepdim=True).clamp(min=1)
        hidden: Tensor = self.hidden(self.table(rows).sum(1) / known.sqrt())
        return hidden

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(self._features(x))
        return outputs

    def _row(self, gram: str) -> int:
        return 1 + zlib.crc32(gram.encode()) % (self.buckets - 1)


@register_network("hashed-ngrams")
def hashed_ngrams(
    shape: tuple[int, ...],
    outputs: int,
    *,
    buckets: int = 2**15,  # number of embedding rows that n-grams are hashed to
    width: int = 64,  # size of an embedding and of the hidden layer
    ngram_max: int = 2,  # longest n-gram, in words
    max_ngrams: int = 128,  # maximum number of n-grams of a text, single words first
) -> nn.Module:
    """Hashed word n-grams of the start of a text, their mean embedding, and one hidden layer."""
    check_texts("hashed-ngrams", shape)
    if not 2 <= buckets <= MAX_BUCKETS:
        raise UserError(f"buckets={buckets}: hashed-ngrams takes from 2 to {MAX_BUCKETS}")
    return HashedNgrams(outputs, buckets, width, ngram_max, max_ngrams)
