"""An open world: samples one by one, few classes with many and many with few, and most of them never seen upstream.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED). Its sequences have 1000 classes,
250 of which are among the 1000 that the upstream model was trained on, with other images, and 750 novel ones. Class
sizes follow a law (see `class_sizes`), as far as there are samples; which class has which rank is drawn. The first two
of five sequences are for hyper-parameter search, the others for tests.

What is upstream depends on `split` alone, so that all sequences share one upstream model. So does the division of the
other classes: those that are novel in a sequence to choose by are never novel in one to test on. Sequences of one role
take theirs round-robin, so that they share none while there are enough. Pretrain classes are taken likewise, and
may come back with the same samples. The dataset's own test set plays no part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.open_world.arrival_order import arrange, parse_arrival
from driftline.streams.open_world.class_sizes import ClassSizeLaw
from driftline.tasks import Classification
from driftline.types import Samples, Step

Role = Literal["validation", "test"]


@dataclass(frozen=True, eq=False)
class OpenWorld:
    """A stream of samples that come one by one, delivered in blocks.

    A sample's `time` is how many came before it, and its `group` is 1 if its class is novel, else 0.
    """

    dataset: Dataset
    number: int
    role: Role
    class_size_law: ClassSizeLaw | None
    """None if the order is given."""
    order: str
    block: int
    rows: np.ndarray
    """Places in the dataset, in the order of arrival."""
    upstream_rows: np.ndarray
    upstream_classes: tuple[int, ...]
    """What the upstream model is trained on."""
    pretrain_classes: tuple[int, ...]
    """Those of them that are in the stream."""
    novel_classes: tuple[int, ...]

    def __len__(self) -> int:
        return -(-len(self.rows) // self.block)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        begin, end = index * self.block, min((index + 1) * self.block, len(self.rows))
        drawn = self.dataset.samples[self.rows[begin:end]]
        samples = replace(drawn, time=np.arange(begin, end), group=self._novel[drawn.y].astype(np.int64))
        return Step(index, self.times[index], samples, one_by_one=True)

    @cached_property
    def times(self) -> tuple[str, ...]:
        """Names of the steps: the first and last of their samples, counted from 1."""
        n, block = len(self.rows), self.block
        return tuple(f"{begin + 1}-{min(begin + block, n)}" for begin in range(0, n, block))

    @cached_property
    def upstream(self) -> Samples:
        """The samples to train on before the stream begins; none of them is in it."""
        return self.dataset.samples[self.upstream_rows]

    @cached_property
    def counts(self) -> np.ndarray:
        """How many samples of each of the dataset's classes the stream has."""
        return np.bincount(self.dataset.samples.y[self.rows], minlength=self.dataset.task.width)

    @cached_property
    def _novel(self) -> np.ndarray:
        novel = np.zeros(self.dataset.task.width, bool)
        novel[list(self.novel_classes)] = True
        return novel


@dataclass(frozen=True)
class UpstreamSize:
    """How much of the data is upstream: of how many classes, and how many samples of each."""

    classes: int
    fraction: float = 0.5
    per_class: int | None = None
    """Number of samples per class, instead of a fraction."""

    def n_upstream(self, n: int) -> int:
        """Return how many of a class's n samples are upstream; 0 if none would be left for the stream.

        >>> [UpstreamSize(5, per_class=k).n_upstream(7) for k in (None, 6, 7)], UpstreamSize(5).n_upstream(1)
        ([3, 6, 0], 0)
        """
        taken = int(self.fraction * n + 1e-9) if self.per_class is None else self.per_class
        return taken if taken < n else 0


@dataclass(frozen=True, eq=False)
class _ClassDivision:
    """The use of each class and sample, the same in all sequences."""

    upstream: np.ndarray
    validation: np.ndarray
    """The classes that may be novel in sequences to choose by."""
    test: np.ndarray
    upstream_rows: list[np.ndarray]
    """For each class of the dataset; empty if it is not upstream."""
    free_rows: list[np.ndarray]
    """For each class of the dataset, what is left for the streams."""


def open_world(
    dataset: Dataset,
    classes: int,
    pretrain: int,
    class_size_law: ClassSizeLaw | str,
    *,
    upstream_classes: int | None = None,
    upstream_share: float = 0.5,
    upstream_each: int | None = None,
    order: str = "uniform",
    number: int = 1,
    sequences: int = 5,
    validation: int = 2,
    disjoint: bool = False,
    block: int = 100,
    split: Seed = Seed(0),
    seed: Seed = Seed(0),
) -> OpenWorld:
    """Return sequence `number`, from 1 to `sequences`; the first `validation` are for hyper-parameter search.

    It has `classes` classes. The upstream model has seen `pretrain` of them, with other samples: it is trained on
    `upstream_classes` classes, by default as many as `pretrain`, and on the share `upstream_share` of each, or
    on `upstream_each` samples of each. A class with too few samples for that is not upstream. `class_size_law`: how
    many samples a class has, for example 25000/(25+r); see `ClassSizeLaw.parse`. Orders: see `arrival_order`. With
    `disjoint` no class is novel in two sequences to test on, or it is refused. `split` decides what is upstream and
    which classes are where; `seed` decides ranks, samples and their order.
    """
    class_size_law = class_size_law if isinstance(class_size_law, ClassSizeLaw) else ClassSizeLaw.parse(class_size_law)
    upstream_size = UpstreamSize(
        pretrain if upstream_classes is None else upstream_classes, upstream_share, upstream_each
    )
    _check_settings(dataset, classes, pretrain, upstream_size, block)
    _check_number(number, sequences, validation)
    parse_arrival(order)
    division = _divide(dataset, classes - pretrain, upstream_size, sequences, validation, disjoint, split)
    testing = number > validation
    pool, turn = (division.test, number - validation - 1) if testing else (division.validation, number - 1)
    old, novel = _round_robin(division.upstream, pretrain, number - 1), _round_robin(pool, classes - pretrain, turn)
    return OpenWorld(
        dataset,
        number,
        "test" if testing else "validation",
        class_size_law,
        order,
        block,
        _rows(division, np.concatenate([old, novel]), class_size_law, order, seed.child("sequence", number)),
        np.sort(np.concatenate(division.upstream_rows)),
        *(tuple(np.sort(listed).tolist()) for listed in (division.upstream, old, novel)),
    )


def _rows(division: _ClassDivision, classes: np.ndarray, law: ClassSizeLaw, order: str, seed: Seed) -> np.ndarray:
    """Return rows of these classes, by the class-size law if available, in order of arrival."""
    ranked = seed.child("ranks").numpy().permutation(classes)
    drawn: list[np.ndarray] = []
    for k, wanted in zip(ranked.tolist(), law.counts(len(ranked)).tolist(), strict=True):
        drawn.append(seed.child("rows", k).numpy().permutation(division.free_rows[k])[:wanted])
    ranks = np.repeat(np.arange(len(drawn)), [len(part) for part in drawn])
    together: np.ndarray = np.concatenate(drawn)
    return np.take(together, arrange(ranks, order, seed.child("order").numpy()))


def _divide(
    dataset: Dataset,
    novel: int,
    upstream_size: UpstreamSize,
    sequences: int,
    validation: int,
    disjoint: bool,
    split: Seed,
) -> _ClassDivision:
    """Draw the upstream classes and their samples, and divide the other classes by role."""
    of_class = rows_by_class(dataset)
    order = split.child("classes").numpy().permutation([k for k, rows in enumerate(of_class) if len(rows)])
    fit = np.array([upstream_size.n_upstream(len(of_class[k])) > 0 for k in order], bool)
    _check_upstream(dataset, int(fit.sum()), upstream_size)
    upstream = order[fit][: upstream_size.classes]
    others = order[~np.isin(order, upstream)]
    cut = _n_validation_classes(dataset, len(others), novel, sequences, validation, disjoint)
    ahead, free = [], []
    for k, rows in enumerate(of_class):
        taken = upstream_size.n_upstream(len(rows)) if k in upstream else 0
        mixed = split.child("upstream", k).numpy().permutation(rows) if taken else rows
        ahead.append(mixed[:taken])
        free.append(mixed[taken:])
    return _ClassDivision(upstream, others[:cut], others[cut:], ahead, free)


def rows_by_class(dataset: Dataset) -> list[np.ndarray]:
    """Return the rows of each class."""
    y = np.asarray(dataset.samples.y)
    ends = np.cumsum(np.bincount(y, minlength=dataset.task.width))
    return np.split(np.argsort(y, kind="stable"), ends[:-1])


def _n_validation_classes(
    dataset: Dataset, others: int, novel: int, sequences: int, validation: int, disjoint: bool
) -> int:
    """Return how many classes that are not upstream may be novel in validation sequences; the rest is for tests."""
    tests = sequences - validation
    least, for_tests = (novel if validation else 0), (novel * (tests if disjoint else min(tests, 1)))
    if others < least + for_tests:
        alone = ", which are to share none" if disjoint else ""
        uses = {"sequences to choose by": least, f"sequences to test on{alone}": for_tests}
        way = "fewer sequences, or disjoint=False" if disjoint else "or validation=0"
        raise UserError(
            f"dataset '{dataset.name}' has {others} classes with samples that are not upstream, and {novel} novel "
            f"classes in a sequence need {least + for_tests} of them: "
            f"{' and '.join(f'{n} for {use}' for use, n in uses.items() if n)}. Take fewer classes, "
            f"fewer upstream classes, {way}"
        )
    return min(max(round(others * validation / sequences), least), others - for_tests)


def _round_robin(pool: np.ndarray, n: int, turn: int) -> np.ndarray:
    """Return the next n items of a pool that starts over at its end.

    >>> _round_robin(np.array([5, 6, 7, 8, 9]), 2, 2).tolist()
    [9, 5]
    """
    return pool[(turn * n + np.arange(n)) % max(len(pool), 1)]


def _check_settings(dataset: Dataset, classes: int, pretrain: int, upstream_size: UpstreamSize, block: int) -> None:
    if not isinstance(dataset.task, Classification):
        raise UserError(f"dataset '{dataset.name}' has no classes, and open-world needs classes")
    if classes < 2 or not 0 <= pretrain <= classes:
        raise UserError(
            f"classes={classes} and pretrain={pretrain}: give two classes or more, and of them at most all as pretrain"
        )
    if upstream_size.classes < max(pretrain, 1):
        raise UserError(
            f"upstream_classes={upstream_size.classes}: the upstream model needs a class, and the {pretrain} pretrain "
            "classes are among those it is trained on"
        )
    if not 0 < upstream_size.fraction < 1:
        raise UserError(f"upstream_share={upstream_size.fraction}: give a share between 0 and 1")
    if upstream_size.per_class is not None and upstream_size.per_class < 1:
        raise UserError(f"upstream_each={upstream_size.per_class}: give a number of samples from 1")
    if block < 1:
        raise UserError(f"block={block}: give a whole number of samples from 1")


def _check_number(number: int, sequences: int, validation: int) -> None:
    if sequences < 1 or not 0 <= validation <= sequences:
        raise UserError(f"sequences={sequences} and validation={validation}: give at least 1, and of them at most all")
    if not 1 <= number <= sequences:
        raise UserError(f"there is no sequence {number}: they are numbered from 1 to {sequences}")


def _check_upstream(dataset: Dataset, fit: int, upstream_size: UpstreamSize) -> None:
    if fit < upstream_size.classes:
        each = (
            f"{upstream_size.fraction:g} of their samples"
            if upstream_size.per_class is None
            else f"{upstream_size.per_class} of their samples each"
        )
        raise UserError(
            f"dataset '{dataset.name}' has {fit} classes that can give {each} to the upstream model and keep some for "
            f"the stream, and upstream_classes={upstream_size.classes}: take fewer classes or fewer samples"
        )
