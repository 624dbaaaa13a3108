"""Markov chains over corruptions and over classes, as in UniTTA.

Du et al., "UniTTA: Unified Benchmark and Versatile Framework Towards Realistic Test-Time Adaptation", 2024, lets the
corruption and the class of each image be the states of two independent chains, each with a correlation and an
imbalance. State i of n has the share pi_i, proportional to imbalance^(-i/(n-1)), so that the first state is `imbalance`
times as frequent as the last.

sticky: with probability rho, the correlation, the state stays, otherwise it is drawn from the shares: P = rho I +
(1-rho) 1 pi'. The shares are exact for every correlation below 1, 0 gives independent draws, and 1 one state after
another, each for its share of the stream.

unitta: the paper's matrix. State i stays with probability 1 - (1 - correlation) imbalance^(i/(n-1)) and else goes to
each other state alike, from state 0. The shares are the same, but rare states have short runs. Where no such matrix
exists, and with correlation 1, the paper's code closes states that have had their share; its streams then change from
balanced to nearly one class on the way. They are refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.test_time.stream import image_keys

ChainKind = Literal["sticky", "unitta"]


@dataclass(frozen=True)
class MarkovChain:
    """A chain of `n` states.

    >>> chain = MarkovChain(4, 0.95, 10, "unitta")
    >>> chain.shares.round(4).tolist(), chain.stay.round(4).tolist()
    ([0.5619, 0.2608, 0.1211, 0.0562], [0.95, 0.8923, 0.7679, 0.5])
    """

    n: int
    correlation: float
    imbalance: float = 1.0
    kind: ChainKind = "sticky"

    def __post_init__(self) -> None:
        if self.kind == "unitta" and not (self.correlation < 1 and self.stay.min() >= 1 / self.n - 1e-9):
            raise UserError(
                f"chain=unitta: no matrix has correlation {self.correlation:g} and imbalance {self.imbalance:g} for "
                f"{self.n} states, because the rarest would stay with probability {self.stay.min():.3g}, and at least "
                "1 of the number of states is needed, below correlation 1. Use chain=sticky"
            )

    @property
    def shares(self) -> np.ndarray:
        """The share of each state in a long stream."""
        weights = self._rarity**-1
        return np.asarray(weights / weights.sum())

    @property
    def stay(self) -> np.ndarray:
        """The probability of each state to stay."""
        if self.kind == "unitta":
            return np.asarray(1 - (1 - self.correlation) * self._rarity)
        return self.correlation + (1 - self.correlation) * self.shares

    @property
    def _rarity(self) -> np.ndarray:
        return np.asarray(float(self.imbalance) ** (np.arange(self.n) / max(self.n - 1, 1)))

    def states(self, steps: int, seed: Seed) -> np.ndarray:
        """Return the states of this many steps; a longer chain of the same seed begins with them, below correlation 1.

        >>> MarkovChain(3, 1, 2).states(9, Seed(0)).tolist()
        [0, 0, 0, 0, 1, 1, 1, 2, 2]
        """
        if self.correlation == 1:
            ends = np.rint(np.cumsum(self.shares) * steps)
            return np.searchsorted(ends, np.arange(steps), side="right").clip(max=self.n - 1)
        return self._jumps(steps, seed) if self.kind == "unitta" else self._draws(steps, seed)

    def _draws(self, steps: int, seed: Seed) -> np.ndarray:
        """Return states that stay until the next draw from the shares; the first is drawn."""
        drawn = np.searchsorted(np.cumsum(self.shares), _uniform(seed.child("state"), steps), side="right")
        at = np.where(_uniform(seed.child("stay"), steps) < self.correlation, 0, np.arange(steps))
        return drawn.clip(max=self.n - 1)[np.maximum.accumulate(at)]

    def _jumps(self, steps: int, seed: Seed) -> np.ndarray:
        """Return runs of states, each followed by another state; the first is state 0."""
        if self.n == 1:
            return np.zeros(steps, np.int64)
        away = seed.child("state").numpy().integers(1, self.n, steps - 1)
        visited = np.concatenate([[0], np.cumsum(away) % self.n])
        lengths = seed.child("stay").numpy().geometric(1 - self.stay[visited])
        runs = int(np.searchsorted(np.cumsum(lengths), steps)) + 1
        return np.repeat(visited[:runs], lengths[:runs])[:steps]


def _uniform(seed: Seed, n: int) -> np.ndarray:
    """Return n numbers from 0 up to 1, each of which depends on its position alone."""
    return np.asarray((image_keys(seed, np.arange(n)) >> np.uint64(11)) * 2.0**-53)
