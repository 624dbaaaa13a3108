"""Markov chains: stationary shares and transition frequencies against their formulas, for all of UniTTA's scenarios."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.test_time.markov import MarkovChain

STEPS = 200_000
CLASSES = [MarkovChain(10, rho, imbalance) for rho, imbalance in product((0.0, 0.95, 1.0), (1.0, 10.0))]
DOMAINS = [MarkovChain(15, rho, imbalance) for rho, imbalance in product((0.0, 0.85, 1.0), (1.0, 5.0))]
UNITTA = [MarkovChain(10, 0.1, 1, "unitta"), MarkovChain(10, 0.95, 10, "unitta"), MarkovChain(15, 0.85, 5, "unitta")]


def matrix(chain: MarkovChain) -> np.ndarray:
    """The transition probabilities, written out from the definitions."""
    n, weights = chain.n, [chain.imbalance ** (-i / (chain.n - 1)) for i in range(chain.n)]
    if chain.kind == "sticky":
        rho, shares = chain.correlation, np.array(weights) / sum(weights)
        return rho * np.eye(n) + (1 - rho) * np.outer(np.ones(n), shares)
    stay = [1 - (1 - chain.correlation) / weight for weight in weights]
    return np.array([[stay[i] if i == j else (1 - stay[i]) / (n - 1) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("chain", [*CLASSES, *DOMAINS, *UNITTA], ids=str)
def test_frequencies_are_those_of_the_matrix(chain: MarkovChain) -> None:
    transitions = matrix(chain)
    np.testing.assert_allclose(chain.shares @ transitions, chain.shares, atol=1e-14)
    np.testing.assert_allclose(np.diag(transitions), chain.stay, atol=1e-14)
    assert chain.shares[0] / chain.shares[-1] == pytest.approx(chain.imbalance)
    states = chain.states(STEPS, Seed(1))
    counts = np.bincount(states, minlength=chain.n)
    if chain.correlation == 1:
        assert np.abs(counts - chain.shares * STEPS).max() <= 1
        assert (np.diff(states) >= 0).all()
        return
    followed = np.zeros((chain.n, chain.n))
    np.add.at(followed, (states[:-1], states[1:]), 1)
    left = followed.sum(axis=1, keepdims=True)
    error = np.sqrt(transitions * (1 - transitions) / left)
    assert (np.abs(followed / left - transitions) < 5 * error).all()
    second = np.sort(np.linalg.eigvals(transitions).real)[-2]  # neighbors are alike: bounds the variance of a share
    variance = chain.shares * (1 - chain.shares) * (1 + second) / (1 - second) / STEPS
    assert (np.abs(counts / STEPS - chain.shares) < 4.5 * np.sqrt(variance)).all()


def test_there_are_36_scenarios_of_two_independent_chains() -> None:
    assert len(list(product(CLASSES, DOMAINS))) == 36
    y, d = CLASSES[3].states(STEPS, Seed(0).child("labels")), DOMAINS[3].states(STEPS, Seed(0).child("domains"))
    joint = np.zeros((10, 15))
    np.add.at(joint, (y, d), 1)
    assert np.abs(joint / STEPS - np.outer(CLASSES[3].shares, DOMAINS[3].shares)).max() < 0.004


def test_runs_of_rare_states_are_short_in_unitta_alone() -> None:
    """Head 26 and tail 20 images with sticky transitions, 20 and 2 in UniTTA, at the same shares."""
    for kind, expected in (("sticky", (26, 20)), ("unitta", (20, 2))):
        chain = MarkovChain(10, 0.95, 10, kind)  # type: ignore[arg-type]
        states = chain.states(STEPS, Seed(2))
        ends = np.flatnonzero(np.diff(states, append=-1))
        lengths, owners = np.diff(ends, prepend=-1), states[ends]
        means = [lengths[owners == k].mean() for k in (0, 9)]
        assert means == pytest.approx(expected, rel=0.06)


def test_correlation_is_not_the_probability_to_stay() -> None:
    """A chain that stays with probability rho, instead of drawing with 1 - rho, leaves .95 for .955."""
    states = MarkovChain(10, 0.95).states(STEPS, Seed(3))
    stayed = (np.diff(states) == 0).mean()
    error = np.sqrt(0.955 * 0.045 / STEPS)
    assert abs(stayed - 0.955) < 4 * error
    assert abs(stayed - 0.95) > 8 * error


def test_seeds_and_lengths() -> None:
    for chain in (MarkovChain(10, 0.9, 3), MarkovChain(10, 0.9, 3, "unitta")):
        long = chain.states(5000, Seed(4))
        assert np.array_equal(chain.states(700, Seed(4)), long[:700]), "a longer chain begins like a shorter one"
        assert not np.array_equal(chain.states(5000, Seed(5)), long)
    assert MarkovChain(1, 0.5).states(3, Seed(0)).tolist() == [0, 0, 0]
    firsts = [MarkovChain(4, 0.9).states(1, Seed(k))[0] for k in range(400)]
    assert np.bincount(firsts).min() > 70, "the first state is drawn from the shares"
    assert {MarkovChain(4, 0.9, 1, "unitta").states(1, Seed(k))[0] for k in range(9)} == {0}


@pytest.mark.parametrize(("correlation", "imbalance"), [(0.1, 10), (1.0, 1), (0.9, 10)])
def test_impossible_matrices_are_refused(correlation: float, imbalance: float) -> None:
    with pytest.raises(UserError, match="Use chain=sticky"):
        MarkovChain(10, correlation, imbalance, "unitta")
