"""Queries that drift away from the upstream data: episodes drawn from it and from clusters.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", Algorithm 1. Episode t = 1..T has
floor(b alpha^(t-1)) upstream queries; of the rest, the share gamma (rounded down) comes from the episode's major
cluster and what remains from the other clusters. The major cluster is a Markov chain: it stays with probability beta,
otherwise each of the others is equally likely; the first is drawn uniformly.

The paper's code differs, and both ways have names. It rounds to the nearest (rounding="round"); it splits the others'
part equally and takes what is left over from one of them (others="equal"), where the paper draws from their union
(others="pooled"). In both, alpha = 0 means no upstream query at all, not even in the first episode.

Departures from the code: no query comes twice in an episode, episodes are shuffled, and pools are not filtered by what
the upstream model answers. Validation and test streams draw from separate pools unless that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from driftline.errors import UserError, unknown_name
from driftline.metrics.refinement import composition
from driftline.seeds import Seed
from driftline.types import Samples, Step

ROUNDING = ("floor", "round")
OTHERS = ("pooled", "equal")
UPSTREAM = "upstream"


class Sources(NamedTuple):
    """Where the queries of a stream come from: `queries(*sources, ...)`."""

    upstream: Samples
    clusters: dict[str, Samples]


@dataclass(frozen=True, eq=False)
class QueryPools:
    """Samples divided by what they are for; no sample has two uses unless both streams share one pool."""

    upstream_set: Samples
    """Held-out upstream data, to measure retention (UKR)."""
    held_out: Samples
    """Held-out data of all clusters, to measure generalization (KG); `group` is the cluster from 1."""
    validation: Sources
    test: Sources


@dataclass(frozen=True, eq=False)
class QueryStream:
    """A stream of episodes. A sample's `group` is its cluster, 0 for upstream, and its `time` is the episode."""

    names: tuple[str, ...]
    """Names of the clusters, upstream first."""
    samples: Samples
    """All samples that queries are drawn from, with their group."""
    majors: np.ndarray
    """The major cluster of each episode, from 1."""
    drawn: tuple[np.ndarray, ...]
    """For each episode, the rows of `samples` that are its queries."""

    def __len__(self) -> int:
        return len(self.drawn)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        rows = self.drawn[index]
        return Step(index, str(index + 1), replace(self.samples[rows], time=np.full(len(rows), index)))

    @cached_property
    def composition(self) -> np.ndarray:
        """The number of queries of each cluster in each episode, episodes x clusters."""
        return composition([np.asarray(self.samples.group)[rows] for rows in self.drawn], len(self.names))


def queries(
    upstream: Samples,
    clusters: Mapping[str, Samples],
    episodes: int = 100,
    queries_per_episode: int = 64,
    alpha: float = 0.9,
    beta: float = 0.5,
    gamma: float = 0.8,
    *,
    rounding: str = "floor",
    others: str = "pooled",
    repeats: bool = True,
    number: int = 0,
    seed: Seed = Seed(0),
) -> QueryStream:
    """Draw stream `number` of this configuration: the same for the same seed, and another for another number.

    A query may come again in a later episode. With repeats=False it does not, and a pool that would run dry is refused
    at once. Streams to choose by and streams to test on need different seeds as well as different pools.
    """
    _check_settings(episodes, queries_per_episode, {"alpha": alpha, "beta": beta, "gamma": gamma}, rounding, others)
    names, sources = (UPSTREAM, *clusters), (upstream, *clusters.values())
    counts = [episode_counts(t, queries_per_episode, alpha, gamma, rounding) for t in range(1, episodes + 1)]
    _check_clusters(len(clusters), beta, gamma)
    _check_ids(names, sources)
    _check_sizes(names, [len(source) for source in sources], counts, others)
    seed = seed.child("stream", number)
    majors = major_clusters(len(clusters), episodes, beta, seed.child("majors").numpy())
    samples = Samples.concat([_in_cluster(k, source) for k, source in enumerate(sources)])
    free = [np.flatnonzero(samples.group == k) for k in range(len(sources))]
    drawn = []
    for t, (share, major) in enumerate(zip(counts, majors, strict=True)):
        drawn.append(_episode(free, share, int(major), others, seed.child("episode", t).numpy(), names, t))
        if not repeats:
            free = [np.setdiff1d(left, drawn[-1]) for left in free]
    return QueryStream(names, samples, majors, tuple(drawn))


def episode_counts(t: int, size: int, alpha: float, gamma: float, rounding: str = "floor") -> tuple[int, int, int]:
    """Return the numbers of upstream, major-cluster and other queries in episode t = 1, 2, ...

    >>> episode_counts(10, 64, 0.9, 0.8), episode_counts(10, 64, 0.9, 0.8, rounding="round")
    ((24, 32, 8), (25, 31, 8))
    """
    whole = round if rounding == "round" else (lambda x: math.floor(x + 1e-9))  # 100 * .29 is a little below 29
    inside = whole(size * alpha ** (t - 1)) if alpha else 0
    major = whole((size - inside) * gamma)
    return inside, major, size - inside - major


def major_clusters(clusters: int, episodes: int, beta: float, rng: np.random.Generator) -> np.ndarray:
    """Return the major cluster of each episode, from 1: it stays with probability beta, else moves to another.

    >>> major_clusters(1, 3, 1.0, np.random.default_rng(0)).tolist()
    [1, 1, 1]
    """
    at = int(rng.integers(clusters))
    majors = [at]
    for _ in range(episodes - 1):
        if rng.random() >= beta:
            at = (at + int(rng.integers(1, clusters))) % clusters
        majors.append(at)
    return np.array(majors) + 1


def pools(
    upstream: Samples,
    clusters: Mapping[str, Samples],
    *,
    upstream_set: int = 512,
    held_out: int = 256,
    validation: float | None = 0.25,
    base: Mapping[object, int] | None = None,
    seed: Seed = Seed(0),
) -> QueryPools:
    """Divide samples at random into held-out sets and what streams draw from.

    `held_out` is per cluster. The share `validation` of what is left goes to the streams to choose by, the rest to
    those to test on; with None both draw from all of it, as in the paper's code. `base` is the original of each sample
    by id, for samples that are transformations of others: no original then has two uses.
    """
    if validation is not None and not 0 < validation < 1:
        raise UserError(f"validation is the share of a pool for validation streams, between 0 and 1, not {validation}")
    _check_clusters(len(clusters), 1, 1)
    _check_ids((UPSTREAM, *clusters), (upstream, *clusters.values()))
    uses: tuple[list[Samples], ...] = ([], [], [])
    sets = {UPSTREAM: upstream, **clusters}
    places = random_places(sets, base, seed)
    for k, ((name, samples), place) in enumerate(zip(sets.items(), places, strict=True)):
        aside, n = held_out if k else upstream_set, len(samples)
        first, start = 0, aside
        if base is not None:
            first, start, n = upstream_set if k else 0, upstream_set + held_out, 1 + max(p.max() for p in places)
        cut = start + round((n - start) * (validation or 0.5))
        bounds = (first, first + aside), (start, cut), (cut, n)
        parts = [np.flatnonzero((place >= low) & (place < high)) for low, high in bounds]
        if aside < 1 or not all(map(len, parts)):
            raise UserError(
                f"'{name}' has {len(samples):,} samples: {start:,} are held out, and validation and test streams "
                "need some too; hold out fewer, but at least 1"
            )
        if validation is None:
            parts[1:] = [np.flatnonzero(place >= start)] * 2
        for kept, rows in zip(uses, parts, strict=True):
            kept.append(_in_cluster(k, samples[rows]))
    evaluation, *streams = uses
    sources = [Sources(first, dict(zip(clusters, rest, strict=True))) for first, *rest in streams]
    return QueryPools(evaluation[0], Samples.concat(evaluation[1:]), *sources)


def random_places(sets: Mapping[str, Samples], base: Mapping[object, int] | None, seed: Seed) -> list[np.ndarray]:
    """Return the place of each sample of each set in a random order: of the samples, or of all originals."""
    seed = seed.child("pools")
    if base is None:
        return [np.argsort(seed.child(name).numpy().permutation(len(samples))) for name, samples in sets.items()]
    originals = [base[one] for samples in sets.values() for one in samples.id.tolist()]
    known, row = np.unique(np.array(originals), return_inverse=True)
    place = seed.numpy().permutation(len(known))[row]
    return np.split(place, np.cumsum([len(samples) for samples in sets.values()])[:-1])


def _episode(
    free: list[np.ndarray],
    share: tuple[int, int, int],
    major: int,
    others: str,
    rng: np.random.Generator,
    names: tuple[str, ...],
    t: int,
) -> np.ndarray:
    """Return the rows of an episode's queries, in random order."""
    rest = [k for k in range(1, len(free)) if k != major]
    wanted = {0: share[0], major: share[1]}
    if others == "equal" and share[2]:
        each, left_over = divmod(share[2], len(rest))
        wanted |= dict.fromkeys(rest, each)
        wanted[int(rng.choice(rest))] += left_over
    elif share[2]:
        pooled = np.concatenate([np.full(len(free[k]), k) for k in rest])
        _check_left("the other clusters together", share[2], len(pooled), t)
        wanted |= dict(zip(*np.unique(rng.choice(pooled, share[2], replace=False), return_counts=True), strict=True))
    for k, n in wanted.items():
        _check_left(f"'{names[k]}'", n, len(free[k]), t)
    rows = np.concatenate([rng.choice(free[k], n, replace=False) for k, n in wanted.items()])
    return np.asarray(rows[rng.permutation(len(rows))])


def _in_cluster(k: int, samples: Samples) -> Samples:
    """Return samples as those of cluster k. Their own time has no meaning in the stream."""
    return replace(samples, time=None, group=np.full(len(samples), k))


def _check_left(what: str, wanted: int, left: int, t: int) -> None:
    if wanted > left:
        raise UserError(
            f"episode {t + 1} needs {wanted} queries of {what}, and {left} are left: give larger pools, fewer "
            "episodes, or repeats=True"
        )


def _check_settings(
    episodes: int, queries_per_episode: int, rates: Mapping[str, float], rounding: str, others: str
) -> None:
    for what, given in (("episodes", episodes), ("queries_per_episode", queries_per_episode)):
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
            raise UserError(f"{what} is {given!r}: give a whole number from 1")
    for what, rate in rates.items():
        if not 0 <= rate <= 1:
            raise UserError(f"{what} is {rate}: give a number from 0 to 1")
    if rounding not in ROUNDING:
        raise unknown_name("rounding", rounding, ROUNDING)
    if others not in OTHERS:
        raise unknown_name("way to draw from the other clusters", others, OTHERS)


def _check_clusters(clusters: int, beta: float, gamma: float) -> None:
    if not clusters:
        raise UserError("a stream of queries needs at least one cluster beside the upstream data")
    if clusters == 1 and (beta < 1 or gamma < 1):
        raise UserError(f"beta = {beta} and gamma = {gamma} need at least two clusters: give more, or set both to 1")


def _check_ids(names: tuple[str, ...], sources: tuple[Samples, ...]) -> None:
    if UPSTREAM in names[1:]:
        raise UserError(f"a cluster cannot be called '{UPSTREAM}': that is the name of the upstream data")
    owners: dict[object, list[str]] = {}
    for name, source in zip(names, sources, strict=True):
        for one in source.id.tolist():
            owners.setdefault(one, []).append(name)
    twice = next((one for one, by in owners.items() if len(by) > 1), None)
    if twice is not None:
        where = " and ".join(f"'{name}'" for name in dict.fromkeys(owners[twice]))
        raise UserError(f"the id {twice} occurs more than once, in {where}: every sample needs an id of its own")


def _check_sizes(names: tuple[str, ...], sizes: list[int], counts: list[tuple[int, int, int]], others: str) -> None:
    """Refuse pools that may be too small, assuming that any cluster may be major in any episode."""
    inside, major, other = (max(column) for column in zip(*counts, strict=True))
    each = [sum(divmod(rest, max(len(names) - 2, 1))) for *_, rest in counts] if others == "equal" else [0]
    for k, (name, size) in enumerate(zip(names, sizes, strict=True)):
        needed = max(major, *each) if k else inside
        if size < needed:
            raise UserError(f"'{name}' has {size} samples, and an episode may need {needed} of them")
        rest = sum(sizes[1:]) - size
        if k and rest < other:
            raise UserError(f"the clusters other than '{name}' have {rest} samples, and an episode may need {other}")
