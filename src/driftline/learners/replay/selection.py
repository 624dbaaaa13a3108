"""Selection of samples to replay: losses per sample, rankings by loss, and nearest samples.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022, with the rankings of MIR:
Aljundi et al., "Online Continual Learning with Maximally Interfered Retrieval", NeurIPS 2019.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from torch import nn

from driftline.device import to_numpy
from driftline.learners.buffers import Buffer
from driftline.models.preprocessing import to_float_batch
from driftline.models.text.tfidf import ngrams
from driftline.tasks import Task
from driftline.training.mac_counter import is_spent
from driftline.training.modes import evaluating
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, JsonObject, concat_rows, take_rows

Ranking = Literal["mir", "maxloss", "reverse", "before-loss"]
"""mir: largest increase of the loss in the virtual model; maxloss: largest loss in the virtual model; reverse: smallest
increase; before-loss: largest loss in the current model."""
NEEDS_VIRTUAL: tuple[Ranking, ...] = ("mir", "maxloss", "reverse")
NEEDS_CURRENT: tuple[Ranking, ...] = ("mir", "reverse", "before-loss")

BUCKETS = 2**18  # columns that words are hashed to


def per_sample_losses(networks: Sequence[nn.Module], task: Task, x: Inputs, y: np.ndarray, batch: int) -> np.ndarray:
    """Return the loss of each sample in each of these copies of a network, in evaluation mode; a row per network.

    Of several accepted answers the first counts. Samples after the point where the compute of the run is spent have
    no losses: the result has fewer columns.
    """
    adapters = [torch_model(network) for network in networks]
    inputs, targets = adapters[0].encode(x), adapters[0].targets(task.targets(y))
    parts = [np.empty((len(networks), 0), np.float32)]
    with torch.no_grad(), ExitStack() as stack:
        for network in networks:
            stack.enter_context(evaluating(network))
        for rows in torch.arange(len(targets)).split(adapters[0].micro_batch or batch):
            if is_spent(networks[0]):
                break
            features, labels = to_float_batch(inputs[rows]), targets[rows]
            losses = [task.loss(adapter.training_outputs(features, labels), labels) for adapter in adapters]
            parts.append(to_numpy(torch.stack(losses)))
    return np.concatenate(parts, axis=1)


def rank_for_replay(ranking: Ranking, before: np.ndarray, after: np.ndarray, n: int) -> np.ndarray:
    """Return the n rows to replay first, by losses under the current and the virtual model; ties by row.

    >>> before, after = np.array([0.2, 1.0, 0.5, 0.1]), np.array([0.9, 1.3, 0.4, 0.6])
    >>> rankings = ("mir", "maxloss", "reverse", "before-loss")
    >>> {name: rank_for_replay(name, before, after, 2).tolist() for name in rankings}
    {'mir': [0, 3], 'maxloss': [1, 0], 'reverse': [2, 1], 'before-loss': [1, 2]}
    """
    if ranking == "mir":
        score = after - before
    elif ranking == "reverse":
        score = before - after
    else:
        score = after if ranking == "maxloss" else before
    return np.argsort(-score, kind="stable")[:n]


class NearestInputs:
    """An index of the nearest samples of a buffer, by their inputs alone.

    Texts are compared by the cosine of their tf-idf weights; document frequencies come from the upstream texts, and
    words are hashed, so that new words have columns too. Numbers are compared by Euclidean distance, and the columns
    of a table are first divided by their upstream standard deviation. Distances do not depend on the model.
    """

    def __init__(self, upstream: Inputs) -> None:
        self._scale: Any = 1.0
        self._buffers: JsonObject = {}  # the vectors of each buffer that were needed so far
        if upstream is None:
            return
        if isinstance(upstream, list):
            counts = _word_counts(upstream)
            self._scale = 1 + np.log((1 + counts.shape[0]) / (1 + np.bincount(counts.indices, minlength=BUCKETS)))
        elif np.ndim(upstream) == 2:
            deviation = np.asarray(upstream, np.float32).std(axis=0)
            self._scale = 1 / np.where(deviation > 1e-6, deviation, 1)

    def nearest(self, x: Inputs, name: str, buffer: Buffer, n: int) -> np.ndarray:
        """Return the rows of a buffer that are among the n nearest to any of these inputs, each once, in order.

        A buffer of the same name may have grown since the last call, but must not have changed.
        """
        vectors: Any = self._buffers.get(name)
        have = 0 if vectors is None else vectors.shape[0]
        if have < len(buffer):
            fresh = self.vectorize(take_rows(buffer.x, slice(have, None)))
            vectors = self._buffers[name] = fresh if vectors is None else concat_rows([vectors, fresh])
        products = self.vectorize(x) @ vectors.T
        squares = np.asarray((vectors * vectors if isinstance(vectors, np.ndarray) else vectors.power(2)).sum(axis=1))
        distances = squares.reshape(1, -1) - 2 * (products if isinstance(products, np.ndarray) else products.toarray())
        return np.unique(np.argsort(distances, axis=1, kind="stable")[:, :n])

    def vectorize(self, x: Inputs) -> Inputs:
        """Return one row per input; similar inputs have near rows."""
        if not isinstance(x, list):
            return np.asarray(x).reshape(len(x), -1).astype(np.float32) * self._scale
        rows = _word_counts(x)
        rows.data = 1 + np.log(rows.data)
        rows = rows.multiply(self._scale).tocsr()
        lengths = np.sqrt(rows.power(2).sum(axis=1))
        return rows.multiply(1 / lengths.reshape(-1, 1)).tocsr()


def _word_counts(texts: list[str]) -> scipy.sparse.csr_array:
    """Return the count of each word in each text; the column of a word is its hash. A text has at least one word."""
    counted = [Counter(zlib.crc32(word.encode()) % BUCKETS for word in ngrams(text, 1)) for text in texts]
    ends = np.cumsum([0, *map(len, counted)])
    columns = np.array([column for words in counted for column in words], int)
    values = np.array([float(count) for words in counted for count in words.values()])
    return scipy.sparse.csr_array((values, columns, ends), shape=(len(texts), BUCKETS))
