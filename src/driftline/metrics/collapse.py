"""Collapse: a model that adapts becomes worse than the same model left frozen.

Press et al., "RDumb: A simple approach that questions our progress in continual test-time adaptation", NeurIPS 2023,
call it a collapse if the mean accuracy is below that of the frozen model. The start and the depth of a collapse are
measured too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError


@dataclass(frozen=True)
class Collapse:
    """The comparison of an adapting model with the frozen one."""

    gain: float
    """Mean accuracy less that of the frozen model."""
    collapsed: bool
    """Whether that is below 0."""
    since: int | None
    """The first window from which on it is behind in every one to the end; None if it ends level or ahead."""
    depth: float
    """How far it falls behind at worst, in a window; 0 if it never does."""
    adapted: int | None
    """The first window in which it is ahead by half of its greatest lead; None if it is never ahead."""

    def __bool__(self) -> bool:
        return self.collapsed


def collapsed(accuracy: ArrayLike, frozen: ArrayLike) -> Collapse:
    """Return whether, when and how far a model fell behind the frozen one, from their accuracies in the same windows.

    >>> found = collapsed([0.5, 0.7, 0.6, 0.3, 0.1], [0.5, 0.5, 0.5, 0.5, 0.5])
    >>> bool(found), found.since, round(found.depth, 2), found.adapted, round(found.gain, 2)
    (True, 3, 0.4, 1, -0.06)
    >>> collapsed([0.5, 0.4, 0.5], [0.5, 0.5, 0.5]).since is None  # it ends level
    True
    """
    ours, theirs = np.asarray(accuracy, float), np.asarray(frozen, float)
    if ours.shape != theirs.shape or ours.ndim != 1 or not len(ours):
        raise UserError(f"curves over the same windows are compared, and these have {ours.shape} and {theirs.shape}")
    lead = ours - theirs
    behind = lead < 0
    ahead_last = np.flatnonzero(~behind)
    since = None if not behind[-1] else (int(ahead_last[-1]) + 1 if len(ahead_last) else 0)
    quick = np.flatnonzero(lead >= lead.max() / 2) if lead.max() > 0 else np.array([], int)
    return Collapse(
        gain=float(lead.mean()),
        collapsed=bool(lead.mean() < 0),
        since=since,
        depth=float(max(0.0, -lead.min())),
        adapted=int(quick[0]) if len(quick) else None,
    )
