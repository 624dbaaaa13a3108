"""A stream of queries in a given order, and the sets that are held out beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.metrics.refinement import composition
from driftline.seeds import Seed
from driftline.streams.order_file import Order
from driftline.streams.refinement import QueryStream
from driftline.types import Samples


def ordered_queries(dataset: Dataset, order: Order, size: int = 64) -> QueryStream:
    """Return the queries of an order, in episodes as its file says, else of `size` queries.

    The clusters are the dataset's. The major cluster of an episode is the one that most of its queries come from.
    """
    names, group = dataset.clusters, dataset.samples.group
    if names is None or group is None:
        raise UserError(f"dataset '{dataset.name}' has no clusters, and refinement needs them")
    drawn = [np.searchsorted(order.listed, order.rows[places]) for places in order.steps(size)]
    samples = dataset.samples[order.listed]
    majors = composition([group[order.listed[rows]] for rows in drawn], len(names))[:, 1:].argmax(axis=1) + 1
    return QueryStream(names, samples, majors, tuple(drawn))


def held_out_sets(
    upstream: Samples,
    clusters: Mapping[str, Samples],
    *,
    upstream_set: int = 512,
    held_out: int = 256,
    seed: Seed = Seed(0),
) -> tuple[Samples, Samples]:
    """Return at most `upstream_set` upstream samples (for UKR) and `held_out` of each cluster (for KG), at random.

    The `group` of a sample is the number of its cluster, 0 for upstream.
    """
    sets = []
    for k, (name, samples) in enumerate({"upstream": upstream, **clusters}.items()):
        order = seed.child("pools").child(name).numpy().permutation(len(samples))
        rows = order[: held_out if k else upstream_set]
        sets.append(replace(samples[rows], time=None, group=np.full(len(rows), k)))
    first, *others = sets
    if not len(first) or not any(map(len, others)):
        where = "of the clusters" if len(first) else "upstream"
        raise UserError(f"all samples {where} are in the stream, and some are needed outside it to evaluate on")
    return first, Samples.concat(others)
