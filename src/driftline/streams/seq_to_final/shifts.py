"""Shift sequences: a dataset under a sequence of shifts, evaluated at the final step.

Ji, Alaa and Sontag, "Seq-to-Final". Shifts accumulate: a step carries all shifts up to it. Each step has training rows,
then validation rows; of each class, the first four fifths (rounded down) are the training rows. Only the final step has
a test set, and it is changed as that step is. Rows are drawn when a sequence is made, images are changed when a step is
asked for.

The paper's code draws sub-populations wrongly (history holds sub-classes that have not entered yet, and 2.4 times the
samples); here they are drawn as the paper describes them. It would split 66 + 66 + 68 samples into 158 and 42; our
split, exact for each class, is 160 and 40. With row_order="reference" the rows are those of the paper's code, whatever
the seed, but not their order and not the noise; it is refused for sub-populations.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError, unknown_name
from driftline.seeds import Seed
from driftline.shifts import (
    Shift,
    ShiftNotation,
    ShiftSteps,
    apply_to_images,
    apply_to_labels,
    check_shifts,
    parse,
    white_level,
)
from driftline.streams.seq_to_final.sampling import (
    ClassProportions,
    RowsByClass,
    SplitRows,
    flatten_cells,
    reference_order,
    rows_by_class,
    shuffle_cells,
    shuffle_together,
    take_per_class,
    train_valid_split,
)
from driftline.tasks import Classification
from driftline.types import Samples, Step

ROW_ORDERS = ("named", "reference")
MIN_CLASS_SAMPLES = 2  # samples of a class in a step: one to train on, one to choose by


@dataclass(frozen=True, eq=False)
class ShiftSequence:
    """Time steps, with a test set of the last one."""

    dataset: Dataset
    names: tuple[str, ...]
    shifts: ShiftSteps
    """For each step, all shifts that it carries."""
    rows: tuple[SplitRows, ...]
    test_rows: np.ndarray
    oracle_rows: SplitRows | None
    seed: Seed
    original_time: bool = False
    """Whether samples keep the time that the dataset gives them; otherwise a sample's time is its step."""
    _cached_step: dict[int, Samples] = field(default_factory=dict, repr=False)  # the latest, since it is large

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        if index not in self._cached_step:
            samples = self._shifted(self.rows[index].all, index, self.seed.child("noise", index))
            self._cached_step.clear()
            self._cached_step[index] = replace(samples, split=self.rows[index].split)
        return Step(index, self.names[index], self._cached_step[index])

    @cached_property
    def test(self) -> Samples:
        """The test set of the final step."""
        return self._shifted(self.test_rows, len(self) - 1, self.seed.child("noise", "test"))

    @cached_property
    def oracle(self) -> Samples | None:
        """The final step if it had many more samples; those of the final step are among them, noise and all."""
        if self.oracle_rows is None:
            return None
        rows, final = self.oracle_rows.all, self[-1].samples
        known = self.rows[-1].all
        added = self._shifted(rows[~np.isin(rows, known)], len(self) - 1, self.seed.child("noise", "oracle"))
        both = Samples.concat([final, added])
        place = np.argsort(np.concatenate([known, rows[~np.isin(rows, known)]]))
        return replace(both[place[np.argsort(np.argsort(rows))]], split=self.oracle_rows.split)

    def with_oracle(self) -> OracleSequence:
        """Return the same steps, but with the oracle's samples in the final one."""
        return OracleSequence(self)

    def for_validation(self) -> ShiftSequence:
        """Return the training parts of the steps, with the validation part of the last one as test set."""
        none = np.empty(0, int)
        train = tuple(SplitRows(rows.train, none) for rows in self.rows)
        return replace(self, rows=train, test_rows=self.rows[-1].valid, oracle_rows=None, _cached_step={})

    def _shifted(self, rows: np.ndarray, index: int, noise: Seed) -> Samples:
        drawn, shifts = self.dataset.samples[rows], self.shifts[index]
        if any(shift.target == "images" for shift in shifts):
            x = apply_to_images(shifts, drawn.x, drawn.y, noise.numpy(), self._white)
        else:
            x = drawn.x
        y = apply_to_labels(shifts, drawn.y, self.dataset.task.width)
        time = drawn.time if self.original_time else np.full(len(rows), index)
        return Samples(x, y, drawn.id, time, drawn.group)

    @cached_property
    def _white(self) -> float:
        return white_level(self.dataset.samples.x)


@dataclass(frozen=True, eq=False)
class OracleSequence:
    """A sequence whose final step has the oracle's samples."""

    sequence: ShiftSequence

    def __len__(self) -> int:
        return len(self.sequence)

    def __getitem__(self, index: int) -> Step:
        index = range(len(self))[index]
        if index < len(self) - 1:
            return self.sequence[index]
        if self.sequence.oracle is None:
            raise UserError("this sequence has no oracle")
        return Step(index, self.sequence.names[index], self.sequence.oracle)


def sequence(
    dataset: Dataset,
    shifts: ShiftNotation,
    sizes: Listed[int],
    test: int,
    *,
    oracle: int | None = None,
    seed: Seed = Seed(0),
    row_order: str = "named",
) -> ShiftSequence:
    """Return a dataset under `shifts` (see `shifts.notation.parse`), `sizes` samples per step, the source first.

    Classes are balanced unless a shift says otherwise, and no row is drawn twice in a step. The `test` rows come from
    the dataset's official test set or, if it has none, are set aside first. `oracle` is how many samples the final step
    has for the oracle. With row_order="reference" the rows are those of the paper's code.
    """
    written = parse(shifts)
    carried: ShiftSteps = tuple(tuple(s for step in written[:t] for s in step) for t in range(len(written) + 1))
    divided = any(shift.needs_subclasses for shift in carried[-1])
    _check_data(dataset, carried[-1], divided, row_order)
    _check_sizes(sizes, test, oracle, len(carried))
    shares = [ClassProportions.of(dataset, shifts_so_far, divided) for shifts_so_far in carried]
    shares[-1].check_enough(test, 1, dataset, "the test set")
    orders, test_order = _orders(dataset, shares[-1], test, len(carried), divided, seed, row_order)
    rows = [
        _draw_rows(dataset, order, shares[t], sizes[t], f"step {t}", seed.child("order", t))
        for t, order in enumerate(orders)
    ]
    more = oracle and _draw_rows(dataset, orders[-1], shares[-1], oracle, "the oracle", seed.child("order", "oracle"))
    tested = take_per_class(test_order, shares[-1].counts(test), dataset, "the test set")
    return ShiftSequence(
        dataset,
        ("0 source", *(f"{t} {', '.join(map(str, step)) or 'no change'}" for t, step in enumerate(written, 1))),
        carried,
        tuple(rows),
        shuffle_together(flatten_cells(tested), seed.child("order", "test")),
        more or None,
        seed,
    )


def _orders(
    dataset: Dataset, final: ClassProportions, test: int, steps: int, divided: bool, seed: Seed, row_order: str
) -> tuple[list[RowsByClass], RowsByClass]:
    """Return the order in which each step takes its training rows, and that of the test rows."""
    every = np.arange(len(dataset.samples))
    if dataset.test is None:
        order = shuffle_cells(rows_by_class(dataset, every, divided), seed.child("test"))
        aside = take_per_class(order, final.counts(test), dataset, "the test set")
        rest = rows_by_class(dataset, np.setdiff1d(every, np.concatenate(flatten_cells(aside))), divided)
        return [shuffle_cells(rest, seed.child("draw", t)) for t in range(steps)], aside
    train, official = (rows_by_class(dataset, every[mask], divided) for mask in (~dataset.test, dataset.test))
    if row_order == "reference":
        return reference_order(train, official, steps)
    return [shuffle_cells(train, seed.child("draw", t)) for t in range(steps)], shuffle_cells(
        official, seed.child("test")
    )


def _draw_rows(
    dataset: Dataset, order: RowsByClass, shares: ClassProportions, n: int, who: str, seed: Seed
) -> SplitRows:
    shares.check_enough(n, MIN_CLASS_SAMPLES, dataset, who)
    return train_valid_split(take_per_class(order, shares.counts(n), dataset, who), seed)


def _check_data(dataset: Dataset, shifts: Listed[Shift], divided: bool, row_order: str) -> None:
    if row_order not in ROW_ORDERS:
        raise unknown_name("row_order", row_order, ROW_ORDERS)
    if row_order == "reference" and dataset.test is None:
        raise UserError(f"row_order='reference' needs an official test set, and dataset '{dataset.name}' has none")
    if row_order == "reference" and divided:
        raise UserError(
            "row_order='reference' is not possible with a sub-population shift (s): the paper's code draws sub-classes "
            "that have not entered yet, which is not repeated here. Use row_order='named'"
        )
    check_task(dataset)
    if divided and dataset.subclasses is None:
        raise UserError(
            f"dataset '{dataset.name}' has no sub-classes that a sub-population shift could draw from; "
            "cifar100 with its coarse labels has, and so has an array with a group"
        )
    check_shifts(shifts, tuple(getattr(dataset.samples.x, "shape", ())[1:]), dataset.task.width)


def check_task(dataset: Dataset) -> None:
    """Refuse data without classes: a step's samples are drawn and split by class."""
    if not isinstance(dataset.task, Classification):
        raise UserError(f"dataset '{dataset.name}' has no classes, and a sequence draws its samples by class")


def _check_sizes(sizes: Listed[int], test: int, oracle: int | None, steps: int) -> None:
    if len(sizes) != steps:
        raise UserError(
            f"{len(sizes)} sizes are given, and there are {steps} steps: the source and {steps - 1} with shifts"
        )
    for name, n in [*((f"step {t}", n) for t, n in enumerate(sizes)), ("test", test), ("oracle", oracle or sizes[-1])]:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise UserError(f"the size of {name} is {n!r}: give a whole number of samples from 1")
    if oracle is not None and oracle < sizes[-1]:
        raise UserError(
            f"the oracle has {oracle:,} samples, fewer than the {sizes[-1]:,} of the final step it includes"
        )
