"""Drift detectors, judged by what their alarms are worth: delay, false alarms, and the harm they prevented."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError


class AlarmReport(NamedTuple):
    """How alarms relate to changes."""

    found: int
    """Changes that an alarm followed in time."""
    missed: int
    false_alarms: int
    """Alarms that are not the first after a change."""
    delay: float
    """Mean steps from a change to its alarm, over the changes found; NaN if none was."""
    delays: tuple[int | None, ...]
    """By change; None where it was missed."""


def match_alarms(alarms: Sequence[int], changes: Sequence[int], patience: int | None = None) -> AlarmReport:
    """Return which changes were detected, with what delay, and the number of false alarms.

    A change at step c is found by the first alarm at a step from c on, before the next change, and no more than
    `patience` steps late (None: as late as the next change). Every other alarm is false. Lower delay is better.

    >>> match_alarms(alarms=[3, 12, 15], changes=[10, 20])
    AlarmReport(found=1, missed=1, false_alarms=2, delay=2.0, delays=(2, None))
    """
    if patience is not None and patience < 0:
        raise UserError(f"patience is a number of steps, at least 0, not {patience}")
    alarms, changes = sorted(alarms), sorted(set(changes))
    delays: list[int | None] = []
    for k, change in enumerate(changes):
        end = changes[k + 1] if k + 1 < len(changes) else None
        late = [alarm - change for alarm in alarms if alarm >= change and (end is None or alarm < end)]
        in_time = late and (patience is None or late[0] <= patience)
        delays.append(int(late[0]) if in_time else None)
    known = [delay for delay in delays if delay is not None]
    mean = float(np.mean(known)) if known else float("nan")
    return AlarmReport(len(known), len(delays) - len(known), len(alarms) - len(known), mean, tuple(delays))


def quality_gained(never: ArrayLike, acted: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the mean over time of acted - never, the quality gained by reacting to alarms. Higher is better.

    >>> round(quality_gained(never=[0.9, 0.6, 0.5], acted=[0.9, 0.8, 0.8]), 6)
    0.166667
    """
    gained = np.asarray(acted, float) - np.asarray(never, float)
    known = np.isfinite(gained)  # a period whose target is constant has no R^2
    shares = None if weights is None else np.asarray(weights, float)[known]
    return float(np.average(gained[known], weights=shares)) if known.any() else float("nan")


def estimate_changes(transfer: ArrayLike, min_loss: float = 0.05) -> list[int]:
    """Return the periods in which the model of the previous period lost more than `min_loss` to a new one.

    `transfer`: the matrix g(t, tau). An estimate for data without known change points; it looks at harm, so a
    change that hurts no model is none.

    >>> estimate_changes([[1.0, 0.99, 0.8], [np.nan, 1.0, 0.7], [np.nan, np.nan, 1.0]])
    [2]
    """
    next_period = np.diagonal(np.asarray(transfer, float), offset=1)
    return [int(tau) + 1 for tau in np.flatnonzero(next_period < 1 - min_loss)]
