"""Sequences of real periods, such as portraits by decade, evaluated at the last one."""

from __future__ import annotations

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError, unknown_name
from driftline.seeds import Seed
from driftline.streams.seq_to_final.sampling import (
    RowsByClass,
    SplitRows,
    apportion,
    flatten_cells,
    rows_by_class,
    shuffle_cells,
    shuffle_together,
    train_valid_split,
)
from driftline.streams.seq_to_final.shifts import ShiftSequence, check_task
from driftline.streams.timeline import period_labels


def period_sequence(
    dataset: Dataset,
    period: str = "decade",
    *,
    first: str | None = None,
    final: str | None = None,
    test: float = 0.5,
    seed: Seed = Seed(0),
) -> ShiftSequence:
    """Return the periods of a dataset as steps; all from `final` on are the last, `test` of it the test set.

    `first` and `final` are names of periods or their beginnings ("1930" for 1930s); what is before `first` is left out.
    The split is by class, where the paper's (Portraits: 40, 10 and 50 % of the last step) is by chance.
    """
    check_task(dataset)
    if dataset.test is not None:
        raise UserError(
            f"dataset '{dataset.name}' brings its own test set, and a sequence in time takes one of its end"
        )
    if not 0 < test < 1:
        raise UserError(f"test={test}: give a share of the final step between 0 and 1")
    labels = period_labels(np.asarray(dataset.samples.time), period)
    names = [str(name) for name in dict.fromkeys(labels.tolist())]
    begin = 0 if first is None else _period(names, first)
    end = len(names) - 1 if final is None else _period(names, final)
    if end <= begin:
        raise UserError(f"the final step, {names[end]}, must come after the first, {names[begin]}")
    steps = [np.flatnonzero(np.isin(labels, part)) for part in (*names[begin:end], names[end:])]
    last = names[end] if end == len(names) - 1 else f"{names[end]} on"
    return _split_test(dataset, (*names[begin:end], last), steps, test, seed)


def _split_test(
    dataset: Dataset, names: tuple[str, ...], steps: list[np.ndarray], test: float, seed: Seed
) -> ShiftSequence:
    """Take the test set from the last step, and split every step."""
    orders = [shuffle_cells(rows_by_class(dataset, rows, False), seed.child("draw", t)) for t, rows in enumerate(steps)]
    tested, orders[-1] = _take_share(orders[-1], int(test * len(steps[-1])))
    test_rows = shuffle_together(flatten_cells(tested), seed.child("order", "test"))
    parts = tuple(train_valid_split(order, seed.child("order", t)) for t, order in enumerate(orders))
    for name, rows in zip(names, parts, strict=True):
        _check_enough(rows, name)
    if not len(test_rows):
        raise UserError(f"test={test} of the {len(steps[-1])} sample(s) of {names[-1]} is 0: give a larger share")
    return ShiftSequence(dataset, names, ((),) * len(steps), parts, test_rows, None, seed, original_time=True)


def _period(names: list[str], name: str) -> int:
    """Return the index of the first period whose name begins like this."""
    for k, known in enumerate(names):
        if known.startswith(str(name)):
            return k
    raise unknown_name("period", str(name), names)


def _take_share(order: RowsByClass, n: int) -> tuple[RowsByClass, RowsByClass]:
    """Return n rows with about the same share of each class, and the rest."""
    counts = apportion(n, [len(group[0]) for group in order])
    pairs = list(zip(order, counts, strict=True))
    return [[group[0][:count]] for group, count in pairs], [[group[0][count:]] for group, count in pairs]


def _check_enough(rows: SplitRows, name: str) -> None:
    if not len(rows.train) or not len(rows.valid):
        raise UserError(
            f"{name} has {len(rows.all)} sample(s), too few of each class to train on and to choose by: "
            "choose longer periods"
        )
