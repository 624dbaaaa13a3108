"""The date of an abrupt change: the row at which models of after begin to fit better than models of before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftline.auditing.shape import Cut

TEMPER = 0.5  # of the likelihood: models are not the true concepts


@dataclass(frozen=True)
class ChangeDate:
    """The time of a change with its 95 % interval, as values of the time column."""

    at: np.generic
    low: np.generic
    high: np.generic


def change_position(before: np.ndarray, after: np.ndarray) -> tuple[int, int, int]:
    """Return the number of rows before the change, and the ends of its 95 % interval.

    `before`, `after`: losses (negative log-likelihoods) of rows in order of time under models of before and after.

    >>> change_position(np.repeat([0.0, 9.0], 5), np.repeat([9.0, 0.0], 5))
    (5, 5, 5)
    """
    total = -np.concatenate([[0], before.cumsum()]) - (after.sum() - np.concatenate([[0], after.cumsum()]))
    weights = np.exp(TEMPER * (total - total.max()))
    cumulative = weights.cumsum() / weights.sum()
    low, high = np.searchsorted(cumulative, [0.025, 0.975])
    best = int(total.argmax())
    return best, int(min(low, best)), int(max(high, best))


def searched_periods(cut: Cut) -> tuple[int, ...]:
    """Return the periods in which a change is looked for."""
    return (cut.period - 1, cut.period, cut.period + 1) if cut.inside else (cut.period - 1, cut.period)


def date_of_change(
    cut: Cut,
    segment: tuple[int, int],
    losses: tuple[np.ndarray, np.ndarray],
    periods: tuple[np.ndarray, np.ndarray],
    times: tuple[np.ndarray, np.ndarray],
) -> ChangeDate:
    """Return the date of a cut.

    `segment`: begin of the segment before and end of the segment after. `losses`, `periods`, `times`: of each half, the
    loss of each model (rows) on each test row, and the period and time of these rows. Models of the searched
    periods are left out, so that every row is new to every model.
    """
    searched = searched_periods(cut)
    models_before = [t for t in range(segment[0], cut.period) if t not in searched] or [cut.period - 1]
    models_after = [t for t in range(cut.period, segment[1]) if t not in searched] or [segment[1] - 1]
    inside = [np.isin(period, searched) for period in periods]
    time = np.concatenate([t[rows] for t, rows in zip(times, inside, strict=True)])
    before = np.concatenate([x[models_before][:, rows].mean(axis=0) for x, rows in zip(losses, inside, strict=True)])
    after = np.concatenate([x[models_after][:, rows].mean(axis=0) for x, rows in zip(losses, inside, strict=True)])
    order = np.argsort(time, kind="stable")
    time = time[order]
    at = change_position(before[order], after[order])
    return ChangeDate(*(time[min(k, len(time) - 1)] for k in at))
