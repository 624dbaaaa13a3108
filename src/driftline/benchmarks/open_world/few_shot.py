"""n-shot k-way episodes at the end of an open-world run, as few-shot papers measure (NED's Table 6).

A network that does well in episodes need not do well in a stream; this measures both in one run. The classes are
neither upstream nor in the stream, and the answer to a query is the class of the nearest mean of the final features of
the run. `driftline few-shot` evaluates networks without a stream, including MAML's gradient steps.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from driftline.device import to_device, to_numpy
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import OpenWorld
from driftline.types import Samples

N_QUERY = 15
MAX_CLASSES, MAX_PER_CLASS = 50, 40  # limits, because the features are recorded


def unseen_class_samples(stream: OpenWorld, way: int, shot: int, seed: Seed) -> dict[str, Samples]:
    """Return samples of unseen classes for episodes; the same for all seeds of a sequence."""
    y = np.asarray(stream.dataset.samples.y)
    met = np.isin(np.arange(stream.dataset.task.width), [*stream.upstream_classes, *stream.novel_classes])
    large = np.flatnonzero(~met & (np.bincount(y, minlength=len(met)) >= shot + N_QUERY))
    if len(large) < way:
        raise UserError(
            f"{way}-way episodes need {way} classes with {shot} + {N_QUERY} samples or more that are neither upstream "
            f"nor in the stream, and there are {len(large)}: give a smaller way or shot, fewer classes, or episodes=0"
        )
    chosen = seed.child("unmet").numpy().permutation(large)[:MAX_CLASSES]
    most = max(MAX_PER_CLASS, shot + N_QUERY)
    rows = [seed.child("unmet", int(k)).numpy().permutation(np.flatnonzero(y == k))[:most] for k in chosen]
    return {"classes never met": stream.dataset.samples[np.sort(np.concatenate(rows))]}


def episode_correctness(frame: pd.DataFrame, way: int, shot: int, n: int, seed: Seed) -> np.ndarray:
    """Return the correctness (episodes x queries) of the nearest class mean, from features and their classes."""
    import torch

    from driftline.training import few_shot as few

    samples = Samples(np.stack(frame["features"].to_list()), frame["truth"].to_numpy())
    features = to_device(torch.from_numpy(samples.x))
    correct = []
    for episode in few.episodes(samples, way, shot, N_QUERY, n, seed.child("episodes")):
        support, query = (features[rows.ravel()] for rows in (episode.support, episode.query))
        predicted = few.squared_distance_logits(support, query, way).argmax(1)
        correct.append(to_numpy(predicted == episode.query_labels))
    return np.array(correct)
