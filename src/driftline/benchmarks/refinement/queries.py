"""The queries of a run: a stream that is drawn from pools or given as a file, and the samples around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import QueryStream, held_out_sets, ordered_queries, pools, queries, read_order
from driftline.streams.order_file import Order
from driftline.streams.refinement import UPSTREAM, QueryPools, Sources, random_places
from driftline.types import Samples

if TYPE_CHECKING:
    from driftline.benchmarks.refinement.benchmark import Options

STREAM_OPTIONS = ("episodes", "queries_per_episode", "alpha", "beta", "gamma", "rounding", "others", "repeats")


@dataclass(frozen=True, eq=False)
class Queries:
    """A stream of queries, the samples to train on, and the sets to evaluate on."""

    name: str
    """What the stream is, for the card."""
    number: int
    stream: QueryStream
    train: Samples
    split: str
    """How the samples to train on were chosen."""
    upstream_set: Samples
    held_out: Samples


def draw_queries(dataset: Dataset, options: Options, number: int, root: Seed) -> Queries:
    """Divide the data into pools, and draw a stream from them."""
    train, upstream, clusters, split = split_upstream(dataset, options.train, root.child("train"))
    divided = pools(
        upstream,
        clusters,
        upstream_set=options.upstream_set,
        held_out=options.held_out,
        validation=options.validation,
        base=originals(dataset),
        seed=root,
    )
    if options.role == "validation" and options.validation is not None:
        divided = _with_validation_sets(divided, options.queries_per_episode, originals(dataset), root)
    drawn = {name: getattr(options, name) for name in STREAM_OPTIONS}
    stream = queries(*getattr(divided, options.role), **drawn, number=number, seed=root.child(options.role))
    name = f"alpha={options.alpha:g}, beta={options.beta:g}, gamma={options.gamma:g}"
    return Queries(name, number, stream, train, split, divided.upstream_set, divided.held_out)


def _with_validation_sets(
    divided: QueryPools, episode: int, base: Mapping[object, int] | None, seed: Seed
) -> QueryPools:
    """Return pools whose held-out sets come from the validation pools, so that no test set decides a selection.

    A set is as large as the one for tests, but at most a third of its pool, and leaves enough for an episode. Samples
    of one original may be in both sets, but then in no stream.
    """
    sources = {UPSTREAM: divided.validation.upstream, **divided.validation.clusters}
    places = random_places(sources, base, seed.child("validation"))
    limits = [len(divided.upstream_set), *np.bincount(np.asarray(divided.held_out.group))[1:].tolist()]
    counts = [1 + int(place.max(initial=-1)) for place in places]
    if min(counts) < 2:
        raise UserError(f"the smallest pool for validation streams has {min(counts)} sample(s): raise validation")
    sizes = [max(1, min(limit, n // 3, n - episode)) for n, limit in zip(counts, limits, strict=True)]
    evaluation, rest = [], []
    for samples, place, size in zip(sources.values(), places, sizes, strict=True):
        evaluation.append(samples[np.flatnonzero(place < size)])
        rest.append(samples[np.flatnonzero(place >= (size if base is None else max(sizes)))])
    streams = Sources(rest[0], dict(zip(divided.validation.clusters, rest[1:], strict=True)))
    return replace(divided, upstream_set=evaluation[0], held_out=Samples.concat(evaluation[1:]), validation=streams)


def read_queries(dataset: Dataset, options: Options, number: int, root: Seed) -> Queries:
    """Read a stream from a file, and divide the samples that none of the file's streams lists."""
    order = read_order(str(options.stream), dataset, ("step", "split"), number=number)
    train, upstream, clusters, split = split_upstream(
        _without_stream(dataset, order), options.train, root.child("train")
    )
    sets = held_out_sets(upstream, clusters, upstream_set=options.upstream_set, held_out=options.held_out, seed=root)
    return Queries(
        f"as in {order.name}",
        order.number,
        ordered_queries(dataset, order, options.queries_per_episode),
        train,
        split,
        *sets,
    )


def _without_stream(dataset: Dataset, order: Order) -> Dataset:
    """Return the samples that are not in the stream, nor transformations of one that is."""
    free, test = np.zeros(len(dataset.samples), bool), dataset.test
    free[order.unlisted] = True
    if order.upstream is not None:
        if dataset.samples.group is not None and dataset.samples.group[order.upstream].any():
            raise UserError(f"{order.name} marks samples as upstream that are of another cluster of the data")
        free[order.upstream] = True
        test = ~np.isin(np.arange(len(free)), order.upstream)
    test = None if test is None else test[free]
    return replace(dataset, samples=dataset.samples[free], test=test, base=None, published_answers=None)


def number_clusters(dataset: Dataset) -> Dataset:
    """Return the dataset with numbered clusters, if the groups of its samples are names: upstream is the first.

    Upstream is the cluster of that name, else that of the first sample; the others follow in order of appearance.
    """
    group = dataset.samples.group
    if dataset.clusters is not None or group is None or group.dtype.kind not in "OU":
        return dataset
    names = sorted(dict.fromkeys(map(str, group)), key=lambda name: name != UPSTREAM)
    numbers = {name: number for number, name in enumerate(names)}
    numbered = np.array([numbers[str(name)] for name in group])
    return replace(dataset, samples=replace(dataset.samples, group=numbered), clusters=tuple(names))


def originals(dataset: Dataset) -> dict[object, int] | None:
    """Return the original of each sample by id; None if all samples are originals."""
    return None if dataset.base is None else dict(zip(dataset.samples.id.tolist(), dataset.base.tolist(), strict=True))


def split_upstream(dataset: Dataset, share: float, seed: Seed) -> tuple[Samples, Samples, dict[str, Samples], str]:
    """Return upstream samples to train on, the other ones, the clusters, and how the split was made."""
    group, names = dataset.samples.group, dataset.clusters
    if names is None or group is None or len(names) < 2:
        raise UserError(
            f"dataset '{dataset.name}' has no clusters, and refinement needs a cluster of upstream data and at least "
            "one other: name them with --set data.cluster=COLUMN of a table or Samples(group=...), or use "
            "digit-clusters, image-clusters, intent-clusters, news-clusters, tiny-qa, qa or nli"
        )
    inside = np.flatnonzero(group == 0)
    train, description = np.zeros(len(inside), bool), "as marked in the data"
    if dataset.test is not None:
        train = ~dataset.test[inside]
    if not train.any() or train.all():
        train = seed.numpy().permutation(len(inside)) < round(share * len(inside))
        description = f"{share:g} of the upstream samples, drawn at random"
    if train.all() or (share and not train.any()):
        raise UserError(f"dataset '{dataset.name}' has {len(inside)} upstream samples, too few to train and evaluate")
    clusters = {name: dataset.samples[np.flatnonzero(group == k)] for k, name in enumerate(names) if k}
    return dataset.samples[inside[train]], dataset.samples[inside[~train]], clusters, description
