from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from driftline.learners.domain_generalization.irm_t import IRMT
from driftline.learners.domain_generalization.windows import GroupedBatch
from driftline.seeds import Seed
from driftline.testing import check_learner
from driftline.testing.fixtures import TASK
from driftline.training.mac_counter import MacCounter
from driftline.training.objectives import invariance_penalty, scale_gradients

from ..periods import fit_by_hand, network, trained, weights

by_hand = partial(fit_by_hand, partial(torch.optim.SGD, lr=0.01))  # Adam would magnify rounding
Quick = partial(IRMT, updates=4, window=2, groups=2, batch=10, penalty_weight=10.0, optimizer="sgd", lr=0.01)


def two_halves(model: Any, batch: GroupedBatch, penalty_weight: float = 10.0, second: int = 1) -> Tensor:
    """IRMv1 with one scale, as the paper's appendix writes it; `second=0` takes both factors from the same half."""
    total = torch.zeros(())
    for outputs, y in zip(model(batch.x).split(5), batch.y.split(5), strict=True):
        scale = torch.ones((), requires_grad=True)
        losses = cross_entropy(outputs * scale, y, reduction="none")
        one, two = (torch.autograd.grad(losses[k::2].mean(), scale, create_graph=True)[0] for k in (0, second))
        total = total + cross_entropy(outputs, y) + penalty_weight * one * two
    return total / 2


def close(one: Any, other: Any) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in pairs)


def test_it_is_the_loop_one_would_write_by_hand() -> None:
    assert close(trained(Quick()).model, by_hand(two_halves))


def test_a_penalty_from_the_same_half_would_be_noticed() -> None:
    assert not close(trained(Quick()).model, by_hand(partial(two_halves, second=0)))


def test_no_penalty_would_be_noticed() -> None:
    plain = by_hand(partial(two_halves, penalty_weight=0.0))
    assert not close(trained(Quick()).model, plain)
    assert close(trained(Quick(penalty_weight=0.0)).model, plain)


class Annealed:
    """Weight 1 for two updates, then 10; `advances` is what Wild-Time's counter does not."""

    def __init__(self, advances: bool = True) -> None:
        self.n_updates, self.advances = 0, advances

    def __call__(self, model: Any, batch: GroupedBatch) -> Tensor:
        self.n_updates += 1
        return two_halves(model, batch, penalty_weight=10.0 if self.n_updates > 2 and self.advances else 1.0)


def test_annealing_advances() -> None:
    class KeepsOptimiser(IRMT):
        def update_groups(self, batch: GroupedBatch) -> None:
            descent = self.optim
            self.new_optimizer = lambda: None  # type: ignore[method-assign]
            super().update_groups(batch)
            del self.new_optimizer
            assert self.optim is descent

    learner = trained(partial(KeepsOptimiser, **Quick.keywords)(anneal_updates=2))
    assert close(learner.model, by_hand(Annealed()))
    assert not close(learner.model, by_hand(Annealed(advances=False)))
    assert learner.n_updates == 4


def test_the_optimiser_starts_again_when_the_weight_jumps() -> None:
    learner = trained(Quick(anneal_updates=3, optimizer="adam"))
    assert {int(state["step"]) for state in learner.optim.state.values()} == {1}
    learner = trained(Quick(optimizer="adam"))
    assert {int(state["step"]) for state in learner.optim.state.values()} == {4}


def test_the_count_goes_on_in_a_warm_start_and_begins_again_in_a_fresh_one() -> None:
    assert trained(Quick(start="warm")).n_updates == 16
    assert trained(Quick()).n_updates == 4


@pytest.mark.parametrize("anneal", [0, 5])
def test_a_warm_start_keeps_the_contract(anneal: int) -> None:
    check_learner(partial(Quick, start="warm", anneal_updates=anneal, lr=1e-3))


def test_groups_of_one_example_give_no_penalty_and_no_nan() -> None:
    learner = trained(Quick(window=1, groups=4, batch=4))
    assert all(weight.isfinite().all() for weight in learner.model.parameters())
    assert weights(learner.model) == weights(trained(Quick(window=1, groups=4, batch=4, penalty_weight=0.0)).model)


def test_the_penalty_costs_no_further_pass() -> None:
    meters = []
    for penalty_weight in (0.0, 10.0):
        model, meter = network(), MacCounter()
        meter.attach(model)
        trained(Quick(penalty_weight=penalty_weight), model=model)
        meters.append((meter.forward, meter.backward))
    assert meters[0] == meters[1]
    model, meter = network(), MacCounter()
    meter.attach(model)
    model(torch.zeros(10, 1, 8, 8)).sum().backward()
    assert meters[0] == (16 * meter.forward, 16 * meter.backward)


def test_the_penalty_is_small_where_the_scale_is_right() -> None:
    outputs, y = torch.randn(400, 3, generator=Seed(0).torch()), torch.zeros(400).long()
    y = (
        torch.distributions.Categorical(logits=outputs)
        .probs.cumsum(1)
        .lt(torch.rand(400, 1, generator=Seed(1).torch()))
        .sum(1)
    )
    by_scale = [scale_gradients(outputs * s, y, TASK.loss) for s in (1.0, 5.0)]
    right, wrong = (invariance_penalty(part).item() for part in by_scale)
    assert abs(right) < 0.02 < wrong


def test_defaults_are_wild_times() -> None:
    assert (IRMT().penalty_weight, IRMT().anneal_updates, IRMT().groups, IRMT().window) == (1.0, 0, 10, 5)
