"""Losses that need no labels, against their definitions."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.learners.test_time.base import entropy
from driftline.learners.test_time.cpl import CPL, conjugate
from driftline.learners.test_time.slr import SLR, likelihood_ratio

from ..tiny import ready


@given(st.integers(0, 2**31), st.sampled_from([0.5, 1.0, 8.0]), st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_conjugate_labels_solve_their_equation(seed: int, eps: float, classes: int) -> None:
    h = 3 * torch.randn(1, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    y = conjugate(h, eps)[0]
    p = h[0].softmax(dim=0)
    matrix = torch.eye(classes, dtype=torch.float64) + eps * torch.diag(p) - eps * torch.outer(p, p)
    torch.testing.assert_close(matrix @ y, p)
    assert float(y.sum()) == pytest.approx(1)


def test_cpl_with_eps_0_is_tent() -> None:
    h = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(CPL(eps=0.0).loss(h), entropy(h).mean())


@given(st.integers(0, 2**31), st.floats(0.1, 3))
@settings(max_examples=30, deadline=None)
def test_likelihood_ratios_are_minus_expected_log_odds(seed: int, scale: float) -> None:
    h = scale * torch.randn(3, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    p = h.softmax(dim=1)
    torch.testing.assert_close(likelihood_ratio(h), -(p * torch.log(p / (1 - p))).sum(dim=1), rtol=1e-6, atol=1e-9)


def test_likelihood_ratios_stay_finite_where_answers_are_certain() -> None:
    h = torch.tensor([[200.0, 0.0, -50.0], [0.0, 0.0, 300.0]], requires_grad=True)
    ratio = likelihood_ratio(h)
    ratio.sum().backward()
    assert h.grad is not None
    assert torch.isfinite(ratio).all()
    assert torch.isfinite(h.grad).all()
    assert ratio.tolist() == pytest.approx([-200, -(300 - math.log(2))])
    assert h.grad[0, 0] == pytest.approx(-1)  # it does not vanish, unlike that of the entropy


def test_the_variety_of_slr_is_steered_through_the_new_part_alone() -> None:
    h = torch.randn(4, 5, generator=torch.Generator().manual_seed(2), requires_grad=True)
    learner = ready(SLR(delta=0.0))
    learner.mean = torch.tensor([0.6, 0.1, 0.1, 0.1, 0.1])
    (slope,) = torch.autograd.grad(learner.loss(h), h)
    p = h.softmax(dim=1)
    mean = 0.9 * torch.tensor([0.6, 0.1, 0.1, 0.1, 0.1]) + 0.1 * p.mean(dim=0)
    (by_hand,) = torch.autograd.grad((0.1 * p.mean(dim=0) * (mean.detach().log() + 1)).sum(), h)
    torch.testing.assert_close(slope, by_hand)
    torch.testing.assert_close(learner.mean, mean.detach())
