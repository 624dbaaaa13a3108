"""SAR against its first updates written out by hand, and its recovery."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from driftline.learners.test_time.base import entropy
from driftline.learners.test_time.bn import BN
from driftline.learners.test_time.sar import SAR
from driftline.testing import check_learner
from driftline.training.mac_counter import MacCounter

from ..tiny import BATCHES, NORM, far, forward, must_agree, pixels, ready, scores, sgd, step, tiny, weights_of

BELOW = NORM[:2]  # the last block is left out
SHARE, RADIUS, LR = 0.55, 0.3, 0.3


def by_hand(
    *, second_pass: bool = True, over_all: bool = False, names: list[str] = BELOW
) -> tuple[list[Tensor], dict[str, Tensor], list[tuple[int, int]]]:
    """The outputs before each update, the weights after the last, and how many samples each pass selects."""
    weights, move, outputs, counts, limit = weights_of(tiny()), sgd(LR), [], [], SHARE * math.log(5)
    for images in BATCHES[:4]:
        x = pixels(images)
        leaves = {name: weights[name].clone().requires_grad_() for name in names}
        h = forward({**weights, **leaves}, x)
        outputs.append(h.detach())
        reliable = entropy(h) < limit
        slopes = torch.autograd.grad(entropy(h)[reliable].mean(), list(leaves.values()), retain_graph=True)
        length = math.sqrt(sum(float((slope**2).sum()) for slope in slopes))
        away = {
            name: (weights[name] + RADIUS * slope / length).requires_grad_()
            for name, slope in zip(names, slopes, strict=True)
        }
        there = entropy(forward({**weights, **away}, x))
        still = (there < limit) if over_all else reliable & (there < limit)
        counts.append((int(reliable.sum()), int(still.sum())))
        if second_pass:
            slopes = torch.autograd.grad(there[still].mean(), list(away.values()))
            moved = [move(k, weights[name], slope) for k, (name, slope) in enumerate(zip(names, slopes, strict=True))]
            weights = {**weights, **dict(zip(names, moved, strict=True))}
        else:
            weights = step(weights, entropy(h)[reliable].mean(), leaves, move)
    return outputs, weights, counts


def sar(**settings: float) -> SAR:
    return SAR(**{"lr": LR, "entropy_fraction": SHARE, "radius": RADIUS, "recovery_threshold": 0.0, **settings})


def test_the_first_updates_are_those_done_by_hand() -> None:
    outputs, weights, counts = by_hand()
    assert any(still < reliable for reliable, still in counts)  # the second selection matters
    must_agree(ready(sar()), BATCHES[:4], outputs, weights)


def test_wrong_updates_end_elsewhere() -> None:
    _, right, _ = by_hand()
    for wrong in (by_hand(second_pass=False)[1], by_hand(over_all=True)[1], by_hand(names=NORM)[1]):
        assert far(right, wrong) > 0.01


def test_the_worked_example() -> None:
    """Three answers of three classes: one is reliable; a gradient of (3, 4) moves weights by (.03, .04)."""
    z = torch.tensor([[4.0, 0, 0], [1, 0, 0], [3, 1, 0]])
    torch.testing.assert_close(entropy(z), torch.tensor([0.1773, 0.9753, 0.5243]), atol=1e-4, rtol=0)
    assert (entropy(z) < 0.4 * math.log(3)).tolist() == [True, False, False]
    learner = ready(SAR())
    learner._weights = [torch.nn.Parameter(torch.zeros(2))]
    seen = []

    def answer(x: Tensor) -> Tensor:
        seen.append(learner._weights[0].detach().clone())
        return z + learner._weights[0].sum()

    learner.model = answer
    learner._sharpness_aware_step(z, torch.tensor([False, False, False]), torch.tensor([3.0, 4.0]))
    torch.testing.assert_close(seen[0], torch.tensor([0.03, 0.04]))
    assert learner._weights[0].tolist() == [0, 0]  # back, and no step: nothing was selected


def test_the_running_mean_recovers_at_the_fourth_low_loss_and_is_forgotten() -> None:
    learner = ready(SAR(lr=LR, entropy_fraction=SHARE))
    scores(learner, BATCHES[:2])
    learner.mean_loss, learner.recoveries, means = None, 0, []
    for loss in (0.25, 0.1, 0.1, 0.1, 0.1):
        learner._recover_if_collapsed(loss)
        means.append(learner.mean_loss)
    assert means == [pytest.approx(m, abs=1e-4) for m in (0.25, 0.2350, 0.2215, 0.2094)] + [None]
    assert learner.recoveries == learner.diagnostics()["recoveries"] == 1
    assert far(weights_of(learner.model), weights_of(tiny())) == 0
    assert learner.optim.state_dict()["state"] == {}  # old momentum would move the weights away again
    learner._recover_if_collapsed(0.25)
    assert learner.mean_loss == 0.25


def test_without_reliable_samples_nothing_moves_not_even_by_momentum() -> None:
    learner = ready(sar())
    learner.answer(BATCHES[0])
    before = weights_of(learner.model)
    assert far(before, weights_of(tiny())) > 0.01
    learner.max_entropy = 1e-6
    learner.answer(BATCHES[1])
    assert far(before, weights_of(learner.model)) == 0


def test_without_a_sample_that_stays_reliable_nothing_moves_not_even_by_momentum() -> None:
    learner = ready(sar())
    learner.answer(BATCHES[0])
    before, mean = weights_of(learner.model), learner.mean_loss
    learner.radius = 100.0  # far away, no answer is sure
    learner.max_entropy = float(entropy(learner.model(pixels(BATCHES[1])).detach()).min()) + 1e-3
    learner.answer(BATCHES[1])
    assert far(before, weights_of(learner.model)) == 0
    assert learner.mean_loss == mean


def test_with_rate_0_the_answers_are_those_of_bn() -> None:
    for ours, theirs in zip(scores(ready(sar(lr=0.0)), BATCHES), scores(ready(BN()), BATCHES), strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_two_forward_and_two_backward_passes_are_counted() -> None:
    model, meter = tiny(), MacCounter()
    meter.attach(model)
    learner = ready(sar(), model)
    learner.answer(BATCHES[0])
    once = 9 * 16 * 4 * 27 + 9 * 4 * 4 * 36 + 9 * 20
    assert meter.forward == 2 * once
    assert meter.backward == 2 * (9 * 4 * 4 * 36 + 9 * 20)


def test_the_defaults_are_those_of_the_paper() -> None:
    learner = ready(SAR())
    assert (learner.lr, learner.momentum, learner.radius, learner.recovery_threshold) == (2.5e-4, 0.9, 0.05, 0.2)
    assert learner.max_entropy == pytest.approx(0.4 * math.log(5))


def test_it_keeps_the_contract_while_it_updates_and_recovers() -> None:
    check_learner(partial(SAR, lr=0.1, entropy_fraction=0.999, recovery_threshold=1.0))
