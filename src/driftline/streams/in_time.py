"""Real time as a sequence of steps, of which only the last counts, such as portraits by decade."""

from __future__ import annotations

import numpy as np

from driftline.data import Dataset
from driftline.errors import UserError, unknown
from driftline.seeds import Seed
from driftline.streams.draws import Cells, Rows, cells, dealt, flat, mixed, shuffled, split
from driftline.streams.periods import period_labels
from driftline.streams.sequence import Sequence, refuse_task


def sequence_in_time(
    dataset: Dataset,
    period: str = "decade",
    *,
    first: str | None = None,
    final: str | None = None,
    test: float = 0.5,
    seed: Seed = Seed(0),
) -> Sequence:
    """The periods of a dataset's own time as steps; all from `final` on is the last, and `test` of it the test set.

    `first` and `final` are names of periods or their beginnings ("1930" for 1930s); what is before `first` is left out.
    The split is by class, where the paper's (Portraits: 40, 10 and 50 % of the last step) is by chance.
    """
    refuse_task(dataset)
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
    return _divided(dataset, (*names[begin:end], last), steps, test, seed)


def _divided(dataset: Dataset, names: tuple[str, ...], steps: list[np.ndarray], test: float, seed: Seed) -> Sequence:
    """Take the test set from the last step, and split every step."""
    orders = [shuffled(cells(dataset, rows, False), seed.child("draw", t)) for t, rows in enumerate(steps)]
    tested, orders[-1] = _parted(orders[-1], int(test * len(steps[-1])))
    test_rows = mixed(flat(tested), seed.child("order", "test"))
    parts = tuple(split(order, seed.child("order", t)) for t, order in enumerate(orders))
    for name, rows in zip(names, parts, strict=True):
        _refuse_few(rows, name)
    if not len(test_rows):
        raise UserError(f"test={test} of the {len(steps[-1])} sample(s) of {names[-1]} is none: give a larger share")
    return Sequence(dataset, names, ((),) * len(steps), parts, test_rows, None, seed, keeps_time=True)


def _period(names: list[str], name: str) -> int:
    """The place of the first period that is called so or begins so."""
    for k, known in enumerate(names):
        if known.startswith(str(name)):
            return k
    raise unknown("period", str(name), names)


def _parted(order: Cells, n: int) -> tuple[Cells, Cells]:
    """About the same share of each class, n rows in all, and the rest."""
    counts = dealt(n, [len(group[0]) for group in order])
    pairs = list(zip(order, counts, strict=True))
    return [[group[0][:count]] for group, count in pairs], [[group[0][count:]] for group, count in pairs]


def _refuse_few(rows: Rows, name: str) -> None:
    if not len(rows.train) or not len(rows.valid):
        raise UserError(
            f"{name} has {len(rows.all)} sample(s), too few of each class to train on and to choose by: "
            "choose longer periods"
        )
