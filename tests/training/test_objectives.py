"""Each objective against numbers worked out by hand, slow loops, and the mistakes that are easy to make."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from driftline import registry
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.training.objectives import (
    ERM,
    IRM,
    Group,
    coral,
    covariance,
    invariance_penalty,
    mix,
    objective,
    scale_gradients,
    update_group_weights,
    weighted_group_loss,
)

LOSS = Classification(("a", "b", "c")).loss


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=Seed(seed).torch(), dtype=torch.float64)


def coral_by_pairs(groups: list[Tensor]) -> float:
    groups = [group for group in groups if len(group) > 1]
    total, pairs = 0.0, list(itertools.combinations([group.detach().numpy() for group in groups], 2))
    for a, b in pairs:
        total += ((a.mean(0) - b.mean(0)) ** 2).mean()
        total += ((np.cov(a.T).reshape(a.shape[1], -1) - np.cov(b.T).reshape(a.shape[1], -1)) ** 2).mean()
    return total / len(pairs)


def test_coral_by_hand() -> None:
    a = torch.tensor([[0.0, 0.0], [2.0, 4.0]])  # mean 1, 2; covariance 2 4 4 8
    b = torch.tensor([[1.0, 2.0], [1.0, 2.0]])  # mean 1, 2; covariance 0
    c = torch.tensor([[3.0, 2.0], [3.0, 2.0]])  # mean 3, 2; covariance 0
    assert coral([a, b]).item() == (4 + 16 + 16 + 64) / 4
    assert coral([b, c]).item() == 4 / 2
    assert coral([a, b, c]).item() == pytest.approx((25 + 2 + (25 + 2)) / 3)
    assert coral([a, a, a]).item() == 0


@pytest.mark.parametrize("lengths", [(4, 4, 3, 3, 3), (2, 2), (5, 1, 4, 1), (9, 2, 7)])
def test_coral_is_the_mean_over_pairs(lengths: tuple[int, ...]) -> None:
    groups = [normal(n, 6, seed=k) * (k + 1) for k, n in enumerate(lengths)]
    assert coral(groups).item() == pytest.approx(coral_by_pairs(groups))


def test_coral_without_two_groups_of_two_is_nothing() -> None:
    a, one = normal(4, 3), normal(1, 3, seed=1)
    for groups in ([], [a], [one, one], [a, one]):
        assert coral(groups).item() == 0
    assert coral([a, one, a + 1]).item() == coral([a, a + 1]).item() > 0


def test_covariance_is_unbiased() -> None:
    rows = normal(5, 3)
    np.testing.assert_allclose(covariance(rows), np.cov(rows.numpy().T))


def test_coral_has_the_right_gradient() -> None:
    groups = [normal(n, 3, seed=n).requires_grad_() for n in (3, 4, 1, 2)]
    assert torch.autograd.gradcheck(lambda *parts: coral(parts), groups)


def test_dro_weights_by_hand() -> None:
    q = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    raised = [0.2 * math.exp(0.1 * 2.0), 0.3, 0.5 * math.exp(0.1 * 4.0)]
    found = update_group_weights(q, torch.tensor([4.0, 2.0]), torch.tensor([2, 0]), eta=0.1)
    np.testing.assert_allclose(found, np.array(raised) / sum(raised))
    assert q.tolist() == [0.2, 0.3, 0.5]


def test_dro_weights_survive_any_loss() -> None:
    q = torch.tensor([0.0, 0.5, 0.5], dtype=torch.float64)
    assert update_group_weights(q, torch.tensor([1e6]), torch.tensor([1]), eta=1.0).tolist() == [0, 1, 0]


def test_dro_weights_carry_no_gradient() -> None:
    losses = torch.tensor([1.0, 2.0], requires_grad=True)
    q = update_group_weights(torch.tensor([0.5, 0.5]), losses, torch.tensor([0, 1]), eta=1.0)
    assert not q.requires_grad
    (slope,) = torch.autograd.grad(weighted_group_loss(q, losses, torch.tensor([0, 1])), losses)
    assert torch.equal(slope, q)


def test_dro_loss_is_unbiased_over_the_draws() -> None:
    q, losses = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([9.0, 1.0, 2.0, 3.0])
    draws = [torch.tensor(draw) for draw in itertools.combinations(range(4), 2)]
    assert weighted_group_loss(q, losses[[0, 3]], torch.tensor([0, 3])).item() == pytest.approx(2 * (0.9 + 1.2))
    ours = np.mean([weighted_group_loss(q, losses[draw], draw).item() for draw in draws])
    renormalised = np.mean([((q[draw] / q[draw].sum()) * losses[draw]).sum().item() for draw in draws])
    assert ours == pytest.approx((q * losses).sum().item())
    assert renormalised != pytest.approx((q * losses).sum().item(), rel=0.01)


def test_dro_that_drops_late_groups_would_be_noticed() -> None:
    def dropping(q: Tensor, losses: Tensor, present: Tensor, k: int) -> Tensor:  # Wild-Time's code
        return update_group_weights(q[:k], losses[present < k], present[present < k], 0.1)

    q, present, losses = torch.full((4,), 0.25), torch.tensor([0, 3]), torch.tensor([1.0, 9.0])
    assert update_group_weights(q, losses, present, 0.1).argmax() == 3
    assert len(dropping(q, losses, present, 2)) == 2


def test_slopes_by_hand() -> None:
    outputs, y = normal(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    p = outputs.softmax(1)
    expected = ((p - torch.nn.functional.one_hot(y, 3)) * outputs).sum(1)  # d/ds of -log softmax(s z)_y
    np.testing.assert_allclose(scale_gradients(outputs, y, LOSS).detach(), expected)
    step = 1e-6
    finite = (LOSS(outputs * (1 + step), y) - LOSS(outputs * (1 - step), y)) / (2 * step)
    np.testing.assert_allclose(scale_gradients(outputs, y, LOSS).detach(), finite, atol=1e-8)


def test_slopes_of_a_regression() -> None:
    outputs, y = normal(5, 1), normal(5, seed=1)
    expected = 2 * (outputs[:, 0] - y.float()) * outputs[:, 0]
    np.testing.assert_allclose(scale_gradients(outputs, y, Regression().loss).detach(), expected)


def test_penalty_by_hand() -> None:
    assert invariance_penalty(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).item() == 3 * 3
    assert invariance_penalty(torch.tensor([1.0, -2.0])).item() == -2  # an estimate of a square may be negative
    assert invariance_penalty(torch.tensor([7.0])).item() == 0


def test_penalty_is_unbiased_and_one_from_a_single_half_is_not() -> None:
    population = torch.tensor([-1.0, 0.0, 4.0])
    draws = [population[list(rows)] for rows in itertools.product(range(3), repeat=4)]  # with replacement
    truth = population.mean().item() ** 2
    assert np.mean([invariance_penalty(draw).item() for draw in draws]) == pytest.approx(truth)
    same_half = np.mean([draw[0::2].mean().item() ** 2 for draw in draws])
    assert same_half == pytest.approx(truth + population.var(correction=0).item() / 2)
    assert same_half > 3 * truth


def test_penalty_has_the_right_gradient() -> None:
    outputs, y = normal(5, 3).requires_grad_(), torch.tensor([0, 1, 2, 0, 1])
    assert torch.autograd.gradcheck(lambda out: invariance_penalty(scale_gradients(out, y, LOSS)), outputs)


def test_penalty_is_that_of_two_derivatives_by_one_scale() -> None:
    outputs, y, scale = normal(6, 3), torch.tensor([0, 1, 2, 0, 1, 1]), torch.ones((), requires_grad=True)
    halves = [cross_entropy(outputs[k::2] * scale, y[k::2]) for k in (0, 1)]
    one, two = (torch.autograd.grad(half, scale)[0].item() for half in halves)
    assert invariance_penalty(scale_gradients(outputs, y, LOSS)).item() == pytest.approx(one * two, rel=1e-6)


def test_mixing_by_hand() -> None:
    a, b = torch.full((2, 1, 2, 2), 8.0), torch.zeros(2, 1, 2, 2)
    assert mix(a, b, 0.25).flatten().tolist() == [2.0] * 8
    assert mix(a, b, torch.tensor([0.5, 1.0])).flatten(1).tolist() == [[4.0] * 4, [8.0] * 4]
    assert mix(a, b, torch.tensor([0.5, 1.0], dtype=torch.float64)).dtype == torch.float32


def test_objectives_penalties_and_measurements_are_registered_by_name() -> None:
    assert registry.names("objective") == ["dro", "erm", "irm", "joint", "weighted"]
    assert registry.names("penalty") == ["adjacent", "fisher", "fisher-all", "l1", "l2"]
    assert registry.names("measurement") == ["fisher", "reference-fisher", "rgn", "snr"]
    for kind in ("objective", "penalty", "measurement"):
        assert all(registry.get(kind, name).name == name for name in registry.names(kind))
    assert (objective("irm", 2.0), objective("erm", 2.0)) == (IRM(2.0), ERM())


def test_weights_of_samples_enter_the_risk() -> None:
    group = Group(torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 0.0]), torch.tensor([0.5, 1.5]))
    assert ERM().loss(Regression(), [group]).item() == (0.5 * 1 + 1.5 * 9) / 2
