"""ROID: weights, loss and prior by hand, and updates that follow from them."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.learners.test_time.bn import BN
from driftline.learners.test_time.roid import ROID, sample_weights, soft_likelihood_ratio, with_prior
from driftline.seeds import Seed
from driftline.testing import check_learner
from driftline.training.cotta_augmentations import roid_augment
from driftline.training.mac_counter import MacCounter

from ..tiny import BATCHES, NORM, TASK, far, forward, must_agree, pixels, ready, scores, sgd, step, tiny, weights_of

OUTPUTS = torch.tensor([[4.0, 0, 0], [3, 1, 0], [0, 3, 0], [0.5, 0.4, 0.3]])
MEAN = torch.tensor([0.6, 0.25, 0.15])
LR = 0.01


def test_the_worked_example() -> None:
    weights = sample_weights(OUTPUTS.softmax(dim=1), MEAN, 1 / 3)
    torch.testing.assert_close(weights, torch.tensor([0, 0, 10.8205, 0]), atol=2e-3, rtol=0)
    ratios = soft_likelihood_ratio(OUTPUTS)
    torch.testing.assert_close(ratios, torch.tensor([-3.0480, -1.0580, -1.8219, 0.6856]), atol=2e-4, rtol=0)
    assert float((weights * ratios).sum() / 4) == pytest.approx(-4.9285, abs=1e-3)
    prior = torch.tensor([0.4126, 0.3369, 0.2505])
    torch.testing.assert_close(with_prior(OUTPUTS, "logits"), OUTPUTS * prior, atol=1e-3, rtol=0)
    by_bayes = OUTPUTS.softmax(dim=1) * prior
    torch.testing.assert_close(
        with_prior(OUTPUTS, "probabilities").softmax(dim=1),
        by_bayes / by_bayes.sum(dim=1, keepdim=True),
        atol=1e-4,
        rtol=0,
    )
    assert with_prior(OUTPUTS, "none") is OUTPUTS


def test_the_mask_is_by_the_mean_and_not_by_the_median() -> None:
    p = torch.tensor([[0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.05, 0.05, 0.9]])
    assert (sample_weights(p, MEAN, 1 / 3) > 0).tolist() == [False, False, False, True]


def test_the_running_mean_of_the_worked_example() -> None:
    learner = ready(ROID())
    learner.mean = MEAN
    learner.model = lambda x: OUTPUTS * x.sum()
    learner.adapt_batch(torch.ones(1, 1, 1, 1, requires_grad=True))
    torch.testing.assert_close(learner.mean, torch.tensor([0.5955, 0.2593, 0.1451]), atol=1e-4, rtol=0)


def by_hand(
    *, over_selected: bool = False, ensembled: bool = True, early_mean: bool = False, held: bool = False
) -> tuple[list[Tensor], dict[str, Tensor], list[int]]:
    """The answers, the weights after the last step, and how many samples have a weight."""
    first, weights, move = weights_of(tiny()), weights_of(tiny()), sgd(LR, nesterov=True)
    mean, answers, counts = torch.full((5,), 0.2), [], []
    for k, images in enumerate(BATCHES[:4]):
        x = pixels(images)
        leaves = {name: weights[name].clone().requires_grad_() for name in NORM}
        h = forward({**weights, **leaves}, x)
        p = h.softmax(dim=1)
        after = 0.9 * mean + 0.1 * p.detach().mean(dim=0)
        used = after if early_mean else mean
        d = torch.stack([1 - (used @ row) / (used.norm() * row.norm()) for row in p.detach()])
        c = torch.stack([(row * row.log()).sum() for row in p.detach()])
        d, c = ((v - v.min()) / (v.max() - v.min()) for v in (d, c))
        chosen = [i for i in range(9) if d[i] >= d.mean()]
        again = forward({**weights, **leaves}, roid_augment(x[chosen], Seed(3).child("augmentation", k).torch()))
        total = torch.zeros(())
        for i, copy in zip(chosen, again.log_softmax(dim=1), strict=True):
            q, w = p[i].clamp(max=0.99), math.exp(3 * float(d[i] * c[i]))
            plain = p[i].detach() if held else p[i]
            symmetric = -0.5 * (plain * copy).sum() - 0.5 * (copy.exp() * plain.log()).sum()
            total = total + w * (-(q * (q / (1 - q) + 1e-5).log()).sum() + symmetric)
        weights = step(weights, total / (len(chosen) if over_selected else 9), leaves, move)
        if ensembled:
            weights = {n: 0.99 * w + 0.01 * first[n] if n in NORM else w for n, w in weights.items()}
        v = p.detach().mean(dim=0)
        smoothing = max(1 / 9, 1 / 5) / float(v.max())
        answers.append(h.detach() * (v + smoothing) / (1 + 5 * smoothing))
        mean, counts = after, [*counts, len(chosen)]
    return answers, weights, counts


def test_the_first_updates_are_those_done_by_hand() -> None:
    answers, weights, counts = by_hand()
    assert all(1 < n < 9 for n in counts)
    must_agree(ready(ROID(lr=LR)), BATCHES[:4], answers, weights)


@pytest.mark.parametrize("wrong", ["over_selected", "early_mean", "held"])
def test_wrong_updates_end_elsewhere(wrong: str) -> None:
    assert far(by_hand()[1], by_hand(**{wrong: True})[1]) > 5e-3


def test_weights_move_back_after_the_step_and_by_the_share() -> None:
    assert far(by_hand()[1], by_hand(ensembled=False)[1]) > 1e-3
    learner = ready(ROID(lr=LR, source_momentum=0.0))
    learner.answer(BATCHES[0])
    assert far(weights_of(learner.model), weights_of(tiny())) < 1e-6  # all the way, after the step


def test_alike_answers_and_a_single_input_have_a_weight_and_no_nan() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2]])
    assert sample_weights(p, MEAN, 1 / 3).tolist() == [1]
    torch.manual_seed(0)
    norm = nn.GroupNorm(2, 4)
    learner = ready(ROID(lr=0.5), nn.Sequential(nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)))
    before = norm.weight.detach().clone()
    assert np.isfinite(learner.answer(BATCHES[0][:1]).scores).all()
    assert torch.isfinite(norm.weight).all()
    assert not torch.equal(before, norm.weight)
    alike = ready(ROID(lr=LR))
    assert np.isfinite(alike.answer(np.repeat(BATCHES[0][:1], 4, axis=0)).scores).all()
    assert all(torch.isfinite(weight).all() for weight in alike.model.parameters())


def test_with_rate_0_and_no_prior_the_answers_are_those_of_bn() -> None:
    learner = ready(ROID(lr=0.0, prior="none"))
    for ours, theirs in zip(scores(learner, BATCHES), scores(ready(BN()), BATCHES), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_predict_has_the_prior_of_its_batch() -> None:
    learner = ready(ROID())
    np.testing.assert_array_equal(learner.predict(BATCHES[0]).scores, learner.answer(BATCHES[0]).scores)
    plain = forward(weights_of(tiny()), pixels(BATCHES[0])).softmax(dim=1)
    assert np.abs(ready(ROID()).predict(BATCHES[0]).scores - plain.numpy()).max() > 0.05


def test_only_samples_with_a_weight_are_predicted_again() -> None:
    model, meter = tiny(), MacCounter()
    meter.attach(model)
    ready(ROID(), model).answer(BATCHES[0])
    chosen, each = by_hand()[2][0], 16 * 4 * 27 + 4 * 4 * 36 + 20
    assert meter.forward == (9 + chosen) * each
    assert meter.backward == (9 + chosen) * (4 * 4 * 36 + 20)


def test_the_defaults_are_those_of_the_authors_and_other_inputs_are_refused() -> None:
    learner = ready(ROID())
    assert (learner.lr, learner.momentum, learner.temperature, learner.source_momentum) == (2.5e-4, 0.9, 1 / 3, 0.99)
    assert learner.optim.param_groups[0]["nesterov"]
    learner.prepare(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 5)), TASK)
    with pytest.raises(UserError, match="these inputs are not images"):
        learner.answer(np.zeros((4, 3), np.float32))


def test_it_keeps_the_contract_with_adam() -> None:
    check_learner(partial(ROID, lr=0.01, optimizer="adam"))
