"""ETA and EATA against their first updates written out by hand."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from driftline.errors import UserError
from driftline.learners.test_time.eata import EATA
from driftline.learners.test_time.eta import ETA
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing import check_learner
from driftline.training.mac_counter import MacCounter
from driftline.types import Samples

from ..tiny import (
    BATCHES,
    NORM,
    adapted_by_hand,
    far,
    forward,
    must_agree,
    pixels,
    ready,
    scores,
    sgd,
    step,
    tiny,
    weights_of,
)

SHARE, MARGIN, LR = 0.55, 0.75, 0.3
SURE = SHARE * math.log(5)
FOUR = BATCHES[:4]
UPSTREAM = Samples(np.random.default_rng(1).integers(0, 256, (150, 6, 6, 3), dtype=np.uint8), np.zeros(150, int))


class ETALoss:
    """The kept-sample logic, one sample at a time."""

    def __init__(self, share: float = SHARE, similarity_margin: float = MARGIN, *, over_batch: bool = False) -> None:
        self.sure, self.similarity_margin, self.over_batch = share * math.log(5), similarity_margin, over_batch
        self.mean: Tensor | None = None
        self.dropped: list[tuple[int, int, int]] = []  # kept, unsure, redundant

    def __call__(self, h: Tensor) -> Tensor | None:
        kept, answers, unsure = [], [], 0
        for row in h:
            p = torch.softmax(row, dim=0)
            nats = -(p * torch.log(p)).sum()
            answer = p.detach()
            if nats >= self.sure:
                unsure += 1
                continue
            if self.mean is not None:
                cosine = (self.mean * answer).sum() / (self.mean.norm() * answer.norm())
                if abs(cosine) >= self.similarity_margin:
                    continue
            kept.append(math.exp(self.sure - nats.item()) * nats)
            answers.append(answer)
        self.dropped.append((len(kept), unsure, len(h) - unsure - len(kept)))
        if not kept:
            return None
        mean = sum(answers) / len(answers)
        self.mean = mean if self.mean is None else 0.9 * self.mean + 0.1 * mean  # type: ignore[assignment]
        return sum(kept) / (len(h) if self.over_batch else len(kept))  # type: ignore[return-value]


def test_the_first_updates_are_those_done_by_hand() -> None:
    loss = ETALoss()
    output, weights = adapted_by_hand(loss, sgd(LR), FOUR)
    # Both reasons to leave a sample out occur, but in the first batch, where there is no mean answer yet.
    assert loss.dropped == [(6, 3, 0), (5, 1, 3), (4, 1, 4), (7, 0, 2)]
    learner = ready(ETA(lr=LR, entropy_fraction=SHARE, similarity_margin=MARGIN))
    must_agree(learner, FOUR, output, weights)
    torch.testing.assert_close(learner.selection.mean, loss.mean, rtol=1e-4, atol=1e-6)


def test_a_mean_over_the_batch_would_end_elsewhere() -> None:
    _, right = adapted_by_hand(ETALoss(), sgd(LR), FOUR)
    _, wrong = adapted_by_hand(ETALoss(over_batch=True), sgd(LR), FOUR)
    assert far(right, wrong) > 0.01


@pytest.mark.parametrize(
    "setting", [{"entropy_fraction": 1e-6}, {"similarity_margin": 1e-6}], ids=["none sure", "none new"]
)
def test_if_no_sample_is_kept_nothing_moves_but_the_clock(setting: dict[str, float]) -> None:
    """Not even by momentum; with margin alone the first batch still counts, as there is no mean answer before it."""
    learner = ready(ETA(**{"lr": LR, "entropy_fraction": SHARE, "similarity_margin": MARGIN, **setting}))
    learner.answer(BATCHES[0])
    before, mean, descent = weights_of(learner.model), learner.selection.mean, learner.optim.state_dict()["state"]
    speeds = [state["momentum_buffer"].clone() for state in descent.values()]
    learner.answer(BATCHES[1])
    assert far(before, weights_of(learner.model)) == 0
    assert learner.selection.mean is mean
    after = [state["momentum_buffer"] for state in learner.optim.state_dict()["state"].values()]
    assert all(torch.equal(a, b) for a, b in zip(speeds, after, strict=True))
    assert (mean is None) == ("entropy_fraction" in setting)


def test_a_skipped_update_is_not_counted_as_compute() -> None:
    model, meter = tiny(), MacCounter()
    meter.attach(model)
    ready(ETA(entropy_fraction=1e-6), model).answer(BATCHES[0])
    assert meter.forward > 0
    assert meter.backward == 0


def test_the_defaults_are_those_of_the_study_and_depend_on_the_number_of_classes() -> None:
    assert (ETA().lr, ETA().momentum, ETA().entropy_fraction, EATA().fisher_images) == (2.5e-4, 0.9, 0.4, 2000)
    for classes, similarity_margin, penalty_weight in (
        (10, 0.4, 1.0),
        (100, 0.1, 1.0),
        (200, 0.1, 1.0),
        (1000, 0.05, 2000.0),
    ):
        learner = EATA()
        learner.prepare(tiny(), Classification(tuple(str(k) for k in range(classes))))
        assert (learner.selection.margin, learner._penalty_weight) == (similarity_margin, penalty_weight)
        assert learner.selection.max_entropy == pytest.approx(0.4 * math.log(classes))
    assert 0.4 * math.log(1000) == pytest.approx(2.763, abs=5e-4)


def by_hand_fisher(batches: list[np.ndarray], *, per_sample: bool = False) -> list[Tensor]:
    """The mean over batches of the squared gradient of the batch-mean cross-entropy with its own best guesses.

    Or, as Fisher information usually is, the mean over samples of the square of each one's gradient.
    """
    total = [torch.zeros(4) for _ in NORM]
    for images in batches:
        leaves = {name: weight.requires_grad_() for name, weight in weights_of(tiny()).items() if name in NORM}
        h = forward({**weights_of(tiny()), **leaves}, pixels(images))
        losses = [-torch.log_softmax(row, dim=0)[int(row.argmax())] for row in h]
        for loss in losses if per_sample else [torch.stack(losses).mean()]:
            slopes = torch.autograd.grad(loss, list(leaves.values()), retain_graph=True)
            parts = len(batches) * (len(h) if per_sample else 1)
            total = [t + slope**2 / parts for t, slope in zip(total, slopes, strict=True)]
    return total


def eata_by_hand(batches: list[np.ndarray], fisher: list[Tensor], penalty_weight: float) -> tuple[list[Tensor], Any]:
    """ETA's loss plus the pull: no factor 1/2, and none at all where no sample is kept."""
    start, weights = weights_of(tiny()), weights_of(tiny())
    output, move, loss = [], sgd(LR), ETALoss()
    for images in batches:
        leaves = {name: weights[name].clone().requires_grad_() for name in NORM}
        h = forward({**weights, **leaves}, pixels(images))
        output.append(h.detach())
        if (value := loss(h)) is not None:
            for importance, (name, leaf) in zip(fisher, leaves.items(), strict=True):
                value = value + penalty_weight * (importance * (leaf - start[name]) ** 2).sum()
            weights = step(weights, value, leaves, move)
    return output, weights


def eata(**settings: Any) -> EATA:
    return EATA(**{"lr": LR, "entropy_fraction": SHARE, "similarity_margin": MARGIN, "penalty_weight": 1.0, **settings})


def test_fisher_from_upstream_is_the_square_of_batch_gradients() -> None:
    learner = ready(eata(fisher_images=100), upstream=UPSTREAM)
    learner.answer(BATCHES[0])
    rows = Seed(3).child("fisher").numpy().permutation(150)[:128]  # 100, rounded up to whole batches of 64
    fisher = by_hand_fisher([UPSTREAM.x[rows[:64]], UPSTREAM.x[rows[64:]]])
    measured = learner.fisher_sum / learner.n_fisher_batches
    torch.testing.assert_close(measured, torch.cat(fisher), rtol=1e-3, atol=1e-7)
    assert (learner.n_fisher_batches, learner.n_fisher_images) == (2, 128)
    usual = by_hand_fisher([UPSTREAM.x[rows[:64]]], per_sample=True)
    assert torch.cat(usual).sum() > 3 * measured.sum()  # another quantity, and larger


def test_the_updates_of_eata_are_those_done_by_hand() -> None:
    rows = Seed(3).child("fisher").numpy().permutation(150)[:128]
    fisher = by_hand_fisher([UPSTREAM.x[rows[:64]], UPSTREAM.x[rows[64:]]])
    penalty_weight = 0.05 / float(torch.cat(fisher).mean())
    output, weights = eata_by_hand(FOUR, fisher, penalty_weight)
    _, free = adapted_by_hand(ETALoss(), sgd(LR), FOUR)
    assert far(weights, free) > 1e-3  # the pull is felt
    must_agree(ready(eata(fisher_images=100, penalty_weight=penalty_weight), upstream=UPSTREAM), FOUR, output, weights)


@pytest.mark.parametrize("given", [None, UPSTREAM], ids=["no upstream", "by choice"])
def test_fisher_from_the_stream_comes_first_and_adaptation_after(given: Samples | None) -> None:
    learner = ready(eata(fisher_images=17, fisher_from="stream", penalty_weight=3.0), upstream=given)
    for images in BATCHES[:2]:  # 18 images are the first to make 17
        by_hand = forward(weights_of(tiny()), pixels(images)).softmax(dim=1)
        np.testing.assert_allclose(learner.answer(images).scores, by_hand, rtol=1e-3, atol=1e-5)
    assert far(weights_of(learner.model), weights_of(tiny())) == 0
    fisher = by_hand_fisher(BATCHES[:2])
    torch.testing.assert_close(learner.fisher_sum / learner.n_fisher_batches, torch.cat(fisher), rtol=1e-3, atol=1e-7)
    output, weights = eata_by_hand(BATCHES[2:5], fisher, 3.0)
    must_agree(learner, BATCHES[2:5], output, weights)


def test_with_strength_0_eata_is_eta() -> None:
    one, other = (
        ready(eata(penalty_weight=0.0), upstream=UPSTREAM),
        ready(ETA(lr=LR, entropy_fraction=SHARE, similarity_margin=MARGIN)),
    )
    ours = list(scores(one, FOUR))
    assert ours
    for a, b in zip(ours, scores(other, FOUR), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_fisher_needs_an_image() -> None:
    with pytest.raises(UserError, match="fisher_images=0"):
        ready(EATA(fisher_images=0))


def test_eata_keeps_the_contract_while_it_measures_the_stream() -> None:
    check_learner(
        partial(EATA, fisher_from="stream", fisher_images=20, lr=0.1, entropy_fraction=0.9, similarity_margin=0.99)
    )


def test_more_sure_samples_weigh_more() -> None:
    learner = ready(ETA(entropy_fraction=0.9, similarity_margin=1.1))
    h = torch.tensor([[4.0, 0, 0, 0, 0], [2.0, 0, 0, 0, 0]])
    p = h.softmax(dim=1)
    nats = -(p * p.log()).sum(dim=1)
    by_hand = (torch.exp(0.9 * math.log(5) - nats) * nats).mean()
    assert float(learner.loss(h)) == pytest.approx(float(by_hand))
