"""Evidence that grows row by row against a claim such as "the deployed model is as good as a new one".

An e-detector: a bet on each row multiplies the evidence, which never falls below 1, so that an old model is noticed as
fast as a young one. If the claim holds, at least 1,000 rows pass between two false alarms on average.
"""

from __future__ import annotations

import numpy as np

BETS = (0.05, 0.1, 0.2, 0.4)
THRESHOLD = 1_000.0


def start() -> np.ndarray:
    """Return no evidence, for each bet."""
    return np.ones(len(BETS))


def update(evidence: np.ndarray, advantages: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Return the evidence after these rows, and the first row at which it reaches the threshold.

    `advantages`: between -1 and 1, with a mean of 0 or less if the claim holds. After an alarm, evidence starts again.

    >>> update(start(), np.ones(30))[1]
    24
    >>> update(start(), -np.ones(30))[0].round(2).tolist()
    [0.95, 0.9, 0.8, 0.6]
    """
    bets, alarm = np.array(BETS), None
    for row, advantage in enumerate(advantages):
        evidence = np.maximum(evidence, 1) * (1 + bets * advantage)
        if evidence.mean() >= THRESHOLD:
            alarm, evidence = row if alarm is None else alarm, start()
    return evidence, alarm
