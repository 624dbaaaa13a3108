"""Online TAS: temporal adaptation estimated from what is known at time t.

The offline TAS of the model of t needs the whole future and one fresh model per future period. At time tau a user
knows the labels up to tau. So each period tau, once its labels are in, is split: a challenger is trained on one part,
and both the deployed model (of an earlier t) and the challenger are evaluated on the other, held-out part. That gives
A(t, tau) and A(tau, tau) as `timeline` defines them, without a sample from after tau, and the estimate is the TAS that
they add up to:

    TAS_online(tau) = min(1, mean_{t < s <= tau} A(t, s) / mean_{t < s <= tau} A(s, s))

It is the offline TAS of row t with the future cut off after tau, and equals it at the end of the data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError
from driftline.metrics.per_period import TOLERANCE


def online_ttr(deployed: ArrayLike, fresh: ArrayLike) -> np.ndarray:
    """Return g(t, tau) = min(1, A(t,tau) / A(tau,tau)) of each period so far; NaN if the new model has no skill.

    >>> online_ttr([0.6, 0.8], [0.8, 0.7]).round(6).tolist()
    [0.75, 1.0]
    """
    deployed, fresh = _pair(deployed, fresh)
    ratio = np.divide(deployed, fresh, out=np.full(deployed.shape, np.nan), where=fresh > TOLERANCE)
    return np.asarray(np.minimum(ratio, 1))


def online_tas(deployed: ArrayLike, fresh: ArrayLike, window: int | None = None) -> np.ndarray:
    """Return the estimate after each period since deployment: ratio of running means, cut at 1. Higher is better.

    `deployed` and `fresh`: accuracies of the deployed model and of each period's challenger, in time order. The k-th
    number depends on the first k of each and on nothing later. `window`: number of latest periods that count, so that
    an old model is noticed as fast as a young one; None: all.

    >>> online_tas([0.72, 0.45, 0.60], [0.75, 0.60, 0.70]).round(6).tolist()
    [0.96, 0.866667, 0.863415]
    >>> online_tas([0.72, 0.45, 0.60], [0.75, 0.60, 0.70], window=1).round(6).tolist()
    [0.96, 0.75, 0.857143]
    """
    deployed, fresh = _pair(deployed, fresh)
    reached, reachable = _running_sum(deployed, window), _running_sum(fresh, window)
    ratio = np.divide(reached, reachable, out=np.full(deployed.shape, np.nan), where=reachable > TOLERANCE)
    return np.asarray(np.minimum(ratio, 1))


def _running_sum(values: np.ndarray, window: int | None) -> np.ndarray:
    total = np.cumsum(values)
    if window is not None:
        total[window:] -= total[:-window].copy()
    return total


def _pair(deployed: ArrayLike, fresh: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    one, other = np.asarray(deployed, float), np.asarray(fresh, float)
    if one.shape != other.shape or one.ndim != 1:
        raise UserError(f"give one accuracy per period for both models, not {one.shape} and {other.shape}")
    return one, other
