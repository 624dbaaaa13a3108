"""What a learner that repeats old samples needs: a memory without doubles, losses per sample, who comes first, epochs.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022, with the rankings of MIR:
Aljundi et al., "Online Continual Learning with Maximally Interfered Retrieval", NeurIPS 2019.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from torch import nn

from driftline.device import to_numpy
from driftline.io import serialization
from driftline.models.preprocessing import to_float_batch
from driftline.models.text.tfidf import ngrams
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training import profiling
from driftline.training.augmentations import augmented
from driftline.training.early_stopping import shuffled_batches
from driftline.training.fit import PRECONVERT_MAX_VALUES, Update, training_tensors
from driftline.training.mac_counter import is_spent
from driftline.training.modes import evaluating, training
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, JsonObject, State, Targets, concat_rows, take_rows

Ranking = Literal["mir", "maxloss", "reverse", "before-loss"]
"""mir: what the virtual model would lose most; maxloss: its highest loss; reverse: what it would lose least;
before-loss: the highest loss of the present model."""
NEEDS_VIRTUAL: tuple[Ranking, ...] = ("mir", "maxloss", "reverse")
NEEDS_CURRENT: tuple[Ranking, ...] = ("mir", "reverse", "before-loss")

BUCKETS = 2**18  # columns that words are hashed to


class UniqueBuffer:
    """All samples that were ever added, each input once, in the order of its first visit.

    An input that comes again keeps its place and takes its latest answer. Inputs are the same if their bytes, or their
    texts, are. Samples are kept as they came: byte images stay bytes.

    >>> buffer = UniqueBuffer()
    >>> buffer.add(["who ?", "where ?"], np.array(["Ann", "Rome"], dtype=object))
    >>> buffer.add(["when ?", "who ?"], np.array(["now", "Bob"], dtype=object))
    >>> buffer.x, buffer.y.tolist()
    (['who ?', 'where ?', 'when ?'], ['Bob', 'Rome', 'now'])
    """

    transient = frozenset({"_positions"})

    def __init__(self) -> None:
        self.x: Inputs = None
        self.y: Targets = None
        self._positions: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, x: Inputs, y: np.ndarray) -> None:
        """Keep these samples."""
        known = len(self)
        latest = {self._positions.setdefault(key, len(self._positions)): row for row, key in enumerate(input_hashes(x))}
        fresh = np.array([latest[place] for place in sorted(latest) if place >= known], int)
        if len(fresh):
            self.x = take_rows(x, fresh) if self.x is None else concat_rows([self.x, take_rows(x, fresh)])
        # Always a new array: inputs and saved states must not change.
        self.y = np.concatenate([part for part in (self.y, y[fresh]) if part is not None])
        again = {place: row for place, row in latest.items() if place < known}
        self.y[list(again)] = y[list(again.values())]

    def state(self) -> State:
        return serialization.public_attributes(self)

    def restore(self, saved: State) -> None:
        serialization.restore_attributes(self, saved)
        self._positions = {} if self.x is None else {key: place for place, key in enumerate(input_hashes(self.x))}


def input_hashes(x: Inputs) -> Iterator[bytes]:
    """Return a short key that identifies an input."""
    for row in x:
        content = row.encode() if isinstance(row, str) else np.ascontiguousarray(row).tobytes()
        yield hashlib.blake2b(content, digest_size=16).digest()


def split_replay_size(size: int, upstream_share: float) -> tuple[int, int]:
    """How many of `size` samples come from the upstream memory and from the online one.

    >>> split_replay_size(32, 0.5), split_replay_size(10, 0.25), split_replay_size(4, 0)
    ((16, 16), (2, 8), (0, 4))
    """
    upstream = round(size * upstream_share)
    return upstream, size - upstream


def per_sample_losses(model: nn.Module, task: Task, x: Inputs, y: np.ndarray, batch: int = 64) -> np.ndarray:
    """Return the loss of each sample in evaluation mode; of several accepted answers the first counts."""
    adapter, parts = torch_model(model), []
    inputs, targets = adapter.encode(x), adapter.targets(task.targets(y))
    with evaluating(model), torch.no_grad():
        for rows in torch.arange(len(targets)).split(adapter.micro_batch or batch):
            outputs = adapter.training_outputs(to_float_batch(inputs[rows]), targets[rows])
            parts.append(task.loss(outputs, targets[rows]))
    return to_numpy(torch.cat(parts))


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


def train_epochs(
    model: nn.Module,
    task: Task,
    x: Inputs,
    y: np.ndarray,
    update: Update,
    *,
    epochs: int,
    batch: int,
    seed: Seed,
    max_updates: int,
    augment: str = "none",
) -> None:
    """Train for epochs over all samples, each in another order; stop after `max_updates` updates if that is not 0, and
    where a run's compute is spent.

    The last, smaller batch counts like the others; a single sample left over joins the batch before it, which batch
    norm needs. Where a task accepts several answers, each epoch trains on one of them at random.
    """
    inputs, targets = training_tensors(model, x, task.targets(y))
    if augment != "none":
        inputs = augmented(inputs, augment, seed)
    elif math.prod(inputs.shape) <= PRECONVERT_MAX_VALUES:
        inputs = to_float_batch(inputs)  # each sample once, not once per epoch
    made = 0
    with training(model, seed.child("noise")):
        for epoch in profiling.sample(range(epochs)):
            if hasattr(task, "sample_answers"):
                targets = torch_model(model).targets(task.sample_answers(y, seed.child("answers", epoch).numpy()))
            for rows in profiling.sample(shuffled_batches(len(inputs), batch, seed.child("order", epoch))):
                if (max_updates and made == max_updates) or is_spent(model):
                    return
                update(to_float_batch(inputs[rows]), targets[rows])
                made += 1


class NearestInputs:
    """Which samples of a memory are like given inputs, judged by the inputs alone.

    Texts are compared by the cosine of their tf-idf weights. Upstream texts say how rare a word is; a hash in place of
    a vocabulary gives room to words that come later. Numbers are compared by Euclidean distance, after the columns of
    a table were divided by their upstream deviation. No network takes part: distances stay true as the model changes,
    each sample is looked at once, and a model that writes needs nothing special.
    """

    def __init__(self, upstream: Inputs) -> None:
        self._scale: Any = 1.0
        self._memories: JsonObject = {}  # vectors of each memory, as far as they were needed
        if upstream is None:
            return
        if isinstance(upstream, list):
            counts = _word_counts(upstream)
            self._scale = 1 + np.log((1 + counts.shape[0]) / (1 + np.bincount(counts.indices, minlength=BUCKETS)))
        elif np.ndim(upstream) == 2:
            deviation = np.asarray(upstream, np.float32).std(axis=0)
            self._scale = 1 / np.where(deviation > 1e-6, deviation, 1)

    def nearest(self, x: Inputs, name: str, memory: Any, n: int) -> np.ndarray:
        """The rows of a memory that are among the n nearest to any of these inputs, each once, in order.

        A memory may have grown since it was last asked for under the same name, but not have changed.
        """
        vectors: Any = self._memories.get(name)
        have = 0 if vectors is None else vectors.shape[0]
        if have < len(memory):
            fresh = self.vectorize(take_rows(memory.x, slice(have, None)))
            vectors = self._memories[name] = fresh if vectors is None else concat_rows([vectors, fresh])
        products = self.vectorize(x) @ vectors.T
        squares = np.asarray((vectors * vectors if isinstance(vectors, np.ndarray) else vectors.power(2)).sum(axis=1))
        distances = squares.reshape(1, -1) - 2 * (products if isinstance(products, np.ndarray) else products.toarray())
        return np.unique(np.argsort(distances, axis=1, kind="stable")[:, :n])

    def vectorize(self, x: Inputs) -> Inputs:
        """One row per input, such that near rows are like inputs."""
        if not isinstance(x, list):
            return np.asarray(x).reshape(len(x), -1).astype(np.float32) * self._scale
        rows = _word_counts(x)
        rows.data = 1 + np.log(rows.data)
        rows = rows.multiply(self._scale).tocsr()
        lengths = np.sqrt(rows.power(2).sum(axis=1))
        return rows.multiply(1 / lengths.reshape(-1, 1)).tocsr()


def _word_counts(texts: list[str]) -> scipy.sparse.csr_array:
    """How often each word occurs in each text; a word's column is a hash of it. A text has at least one word."""
    counted = [Counter(zlib.crc32(word.encode()) % BUCKETS for word in ngrams(text, 1)) for text in texts]
    ends = np.cumsum([0, *map(len, counted)])
    columns = np.array([column for words in counted for column in words], int)
    values = np.array([float(count) for words in counted for count in words.values()])
    return scipy.sparse.csr_array((values, columns, ends), shape=(len(texts), BUCKETS))
