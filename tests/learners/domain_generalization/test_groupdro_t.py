from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from driftline.learners.domain_generalization.groupdro_t import GroupDROT
from driftline.learners.domain_generalization.windows import GroupedBatch
from driftline.testing import check_learner
from driftline.types import Samples

from ..periods import PERIODS, fit_by_hand, trained

by_hand = partial(fit_by_hand, partial(torch.optim.SGD, lr=0.1))  # Adam would magnify rounding
Quick = partial(GroupDROT, updates=4, window=2, groups=2, batch=10, eta=0.5, optimizer="sgd", lr=0.1)


class Sagawa:
    """Algorithm 1 with two groups per update, in plain numbers."""

    def __init__(self, known: int = 3) -> None:
        self.q = np.full(3, 1 / 3)
        self.known = known

    def __call__(self, model: Any, batch: GroupedBatch) -> Tensor:
        total = torch.zeros(())
        losses = [cross_entropy(*pair) for pair in zip(model(batch.x).split(5), batch.y.split(5), strict=True)]
        kept = [(g, loss) for g, loss in zip(batch.windows.tolist(), losses, strict=True) if g < self.known]
        for g, loss in kept:
            self.q[g] *= np.exp(0.5 * loss.item())
        self.q /= self.q.sum()
        for g, loss in kept:
            total = total + 3 / 2 * self.q[g] * loss
        return total


def close(one: Any, other: Any) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in pairs)


def test_it_is_the_loop_one_would_write_by_hand() -> None:
    learner, objective = trained(Quick()), Sagawa()
    assert close(learner.model, by_hand(objective))
    np.testing.assert_allclose(learner.q, objective.q, rtol=1e-5)


def test_dropping_late_windows_would_be_noticed() -> None:
    learner, objective = trained(Quick()), Sagawa(known=2)  # Wild-Time knows as many windows as are drawn
    assert not close(learner.model, by_hand(objective))
    assert learner.q[2] > 1.1 * objective.q[2]


def test_all_windows_have_a_weight() -> None:
    learner = trained(Quick(window=1, groups=2))
    assert learner.q.shape == (4,)
    assert learner.q.sum().item() == pytest.approx(1)
    assert len(set(learner.q.tolist())) == 4


def test_without_eta_weights_stay_equal_and_it_is_erm() -> None:
    learner = trained(Quick(eta=0.0))
    np.testing.assert_allclose(learner.q, 1 / 3)
    assert close(learner.model, by_hand(lambda model, batch: cross_entropy(model(batch.x), batch.y)))


def test_the_hardest_window_gains_weight() -> None:
    rng = np.random.default_rng(0)
    hopeless = Samples(PERIODS[2].x, rng.integers(0, 3, 18))
    periods = [PERIODS[0], PERIODS[0], hopeless, PERIODS[0]]
    learner = trained(GroupDROT(updates=150, window=1, groups=2, eta=0.05, lr=1e-2), periods)
    assert learner.q.argmax() == 2
    assert learner.q[2] > 0.5


def test_a_fresh_start_forgets_the_weights() -> None:
    four, all_at_once = trained(Quick()), Quick()
    all_at_once.evaluated_at_end = True
    trained(all_at_once).finish()
    assert torch.equal(four.q, all_at_once.q)


def test_weights_grow_with_the_windows() -> None:
    learner = trained(Quick(start="warm", updates=0), PERIODS[:3])  # two windows
    learner.q = torch.tensor([0.8, 0.2], dtype=torch.float64)
    learner.learn(PERIODS[3].x, PERIODS[3].y)
    np.testing.assert_allclose(learner.q, [0.8 * 2 / 3, 0.2 * 2 / 3, 1 / 3])


def test_a_warm_start_keeps_the_contract() -> None:
    check_learner(partial(Quick, start="warm", window=1))


def test_weights_are_saved() -> None:
    learner, other = trained(Quick()), trained(Quick(), [])
    other.restore(learner.state())
    assert torch.equal(learner.q, other.q)


def test_defaults_are_wild_times() -> None:
    assert (GroupDROT().eta, GroupDROT().groups, GroupDROT().window) == (0.01, 10, 5)
