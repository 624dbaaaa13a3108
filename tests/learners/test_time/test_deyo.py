"""DeYO: its loss by hand, the patches, and updates that follow from both."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.learners.test_time.base import entropy
from driftline.learners.test_time.bn import BN
from driftline.learners.test_time.deyo import DeYO, shape_loss, shuffle_patches
from driftline.seeds import Seed
from driftline.testing import check_learner
from driftline.training.mac_counter import MacCounter

from ..tiny import BATCHES, NORM, TASK, far, forward, must_agree, pixels, ready, scores, sgd, step, tiny, weights_of

SHARE, DROP, LR = 0.7, 0.05, 0.3
OUTPUTS = torch.tensor([[5.0, 0, 0], [4, 0, 0], [1, 0, 0]])
SHUFFLED = torch.tensor([[1.0, 0, 0], [3.5, 0, 0], [0, 0, 0]])


def test_the_worked_example() -> None:
    torch.testing.assert_close(entropy(OUTPUTS), torch.tensor([0.0799, 0.1773, 0.9753]), atol=1e-4, rtol=0)
    sure = entropy(OUTPUTS) < 0.5 * math.log(3)
    assert sure.tolist() == [True, True, False]
    loss = shape_loss(OUTPUTS[sure], SHUFFLED[sure], 0.2)  # the second image is sure whatever its shape
    assert float(loss) == pytest.approx(0.2348, abs=2e-4)  # 2.9404 x .0799
    assert shape_loss(OUTPUTS[1:2], SHUFFLED[1:2], 0.2) is None
    assert shape_loss(OUTPUTS, OUTPUTS, 0.0) is None  # answers that do not change at all are never selected


def test_the_weights_are_held_fixed_and_the_answer_is_that_of_the_plain_image() -> None:
    h = OUTPUTS[:1].clone().requires_grad_()
    (slope,) = torch.autograd.grad(shape_loss(h, SHUFFLED[:1], 0.2), h)
    (plain,) = torch.autograd.grad(entropy(h).sum(), h)
    torch.testing.assert_close(slope, 2.9404 * plain, atol=1e-4, rtol=1e-3)
    elsewhere = torch.tensor([[0.0, 5, 0]])  # as sure as before, of another class: the answer's drop is large
    assert float(shape_loss(OUTPUTS[:1], elsewhere, 0.9)) > 0


def by_hand(*, one_order: bool = False, over_batch: bool = False) -> tuple[list[Tensor], dict[str, Tensor], list[int]]:
    """The outputs before each update, the weights after the last, and how many samples are selected."""
    weights, move, outputs, counts, names = weights_of(tiny()), sgd(LR), [], [], NORM[:2]
    for k, images in enumerate(BATCHES[:4]):
        x = pixels(images)
        leaves = {name: weights[name].clone().requires_grad_() for name in names}
        h = forward({**weights, **leaves}, x)
        outputs.append(h.detach())
        sure = [i for i in range(len(h)) if float(entropy(h.detach())[i]) < SHARE * math.log(5)]
        mixed = shuffle_patches(x[sure], Seed(3).child("patches", k).torch())
        if one_order:
            mixed = torch.cat([shuffle_patches(x[i : i + 1], Seed(3).child("patches", k).torch()) for i in sure])
        q, terms = forward(weights, mixed).softmax(dim=1), []
        for row, i in enumerate(sure):
            p = h[i].softmax(dim=0).detach()
            drop = float(p.max() - q[row, int(p.argmax())])
            if drop > DROP:
                nats = entropy(h[i : i + 1])[0]
                terms.append((math.exp(0.4 * math.log(5) - nats.item()) + math.exp(drop)) * nats)
        counts.append((len(sure), len(terms)))
        if terms:
            weights = step(weights, sum(terms) / (len(h) if over_batch else len(terms)), leaves, move)
    return outputs, weights, counts


def test_the_first_updates_are_those_done_by_hand() -> None:
    outputs, weights, counts = by_hand()
    assert all(selected > 0 for _, selected in counts)
    assert any(selected < sure < 9 for sure, selected in counts)  # both reasons to leave a sample out occur
    must_agree(ready(DeYO(lr=LR, entropy_fraction=SHARE, min_drop=DROP)), BATCHES[:4], outputs, weights)
    for wrong in (by_hand(one_order=True)[1], by_hand(over_batch=True)[1]):
        assert far(weights, wrong) > 0.01


def test_patches_change_places_and_nothing_else() -> None:
    x = torch.arange(2 * 3 * 8 * 12.0).reshape(2, 3, 8, 12)
    mixed = shuffle_patches(x, Seed(0).torch())
    patches = {tuple(p.flatten().tolist()) for p in cut(x[0])}
    assert patches == {tuple(p.flatten().tolist()) for p in cut(mixed[0])}
    order = [[[torch.equal(p, q) for q in cut(x[i])].index(True) for p in cut(mixed[i])] for i in (0, 1)]
    assert sorted(order[0]) == sorted(order[1]) == list(range(16))
    assert order[0] != order[1]  # each image has an order of its own
    assert order[0] != list(range(16))
    assert shuffle_patches(torch.rand(2, 3, 6, 7), Seed(0).torch()).shape == (2, 3, 6, 7)


def cut(image: Tensor) -> list[Tensor]:
    return [part for rows in image.chunk(4, dim=1) for part in rows.chunk(4, dim=2)]


def test_an_empty_selection_leaves_weights_and_momentum_alone() -> None:
    learner = ready(DeYO(lr=LR, entropy_fraction=SHARE, min_drop=DROP))
    learner.answer(BATCHES[0])
    before = weights_of(learner.model)
    for name, value in (("min_drop", 1.0), ("max_entropy", 1e-6)):
        setattr(learner, name, value)
        learner.answer(BATCHES[1])
        assert far(before, weights_of(learner.model)) == 0


def test_with_batch_norm_a_single_sure_image_is_not_shuffled() -> None:
    """It would have no batch statistics."""
    learner = ready(DeYO(lr=LR, min_drop=-1.0))
    entropies = entropy(forward(weights_of(tiny()), pixels(BATCHES[0]))).sort().values
    learner.max_entropy = float(entropies[:2].mean())
    learner.answer(BATCHES[0])
    assert far(weights_of(learner.model), weights_of(tiny())) == 0
    learner.max_entropy = float(entropies[1:3].mean())
    learner.answer(BATCHES[0])
    assert far(weights_of(learner.model), weights_of(tiny())) > 0


def test_only_sure_images_are_shuffled_and_paid_for() -> None:
    model, meter = tiny(), MacCounter()
    meter.attach(model)
    learner = ready(DeYO(entropy_fraction=SHARE, min_drop=1.0), model)
    sure = int((entropy(forward(weights_of(model), pixels(BATCHES[0]))) < SHARE * math.log(5)).sum())
    learner.answer(BATCHES[0])
    each = 16 * 4 * 27 + 4 * 4 * 36 + 20
    assert (meter.forward, meter.backward) == ((9 + sure) * each, 0)


def test_with_rate_0_the_answers_are_those_of_bn() -> None:
    learner = ready(DeYO(lr=0.0, entropy_fraction=SHARE, min_drop=DROP))
    for ours, theirs in zip(scores(learner, BATCHES), scores(ready(BN()), BATCHES), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_single_image_is_adapted_to_without_batch_norm() -> None:
    torch.manual_seed(0)
    norm = nn.GroupNorm(2, 4)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))
    learner = ready(DeYO(lr=1.0, entropy_fraction=1.1, min_drop=-1.0), network)
    before = norm.weight.detach().clone()
    learner.answer(BATCHES[0][:1])
    assert not torch.equal(before, norm.weight)


def test_the_defaults_are_those_of_the_paper_and_other_inputs_are_refused() -> None:
    learner = ready(DeYO())
    assert (learner.lr, learner.momentum, learner.min_drop) == (2.5e-4, 0.9, 0.2)
    assert learner.max_entropy == pytest.approx(0.5 * math.log(5))
    learner.prepare(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 5)), TASK)
    with pytest.raises(UserError, match="these inputs are not images"):
        learner.answer(np.zeros((4, 3), np.float32))


def test_it_keeps_the_contract_while_it_updates() -> None:
    check_learner(partial(DeYO, lr=0.1, entropy_fraction=1.1, min_drop=-1.0))
