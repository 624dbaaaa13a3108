"""MEMO: updates and answers by hand, and nothing that stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import RequirementError, UserError
from driftline.learners.buffers import input_hashes
from driftline.learners.frozen import Frozen
from driftline.learners.predict_check import fingerprint
from driftline.learners.test_time.memo import MEMO
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.training.augmix import augmix
from driftline.training.blended_batch_norm import BlendedBatchNorm
from driftline.training.mac_counter import MacCounter

from ..tiny import BATCHES, TASK, pixels, ready, scores, settled, tiny, weights_of

IMAGES = BATCHES[0][:4]
COPIES, LR, STRENGTH = 3, 0.02, 4


def blended(weights: dict[str, Tensor], stats: dict[str, Tensor], x: Tensor) -> Tensor:
    """The network, normalized by 4/5 of its running statistics and 1/5 of those of the pass."""
    for layer in ("layer1", "layer2"):
        x = nn.functional.conv2d(x, weights[f"{layer}.0.weight"])
        values = x.detach().transpose(0, 1).flatten(1)
        mean = (STRENGTH * stats[f"{layer}.1.running_mean"] + values.mean(dim=1)) / (STRENGTH + 1)
        variance = (STRENGTH * stats[f"{layer}.1.running_var"] + values.var(dim=1, correction=1)) / (STRENGTH + 1)
        scale, shift, mean, variance = (
            v.view(1, -1, 1, 1) for v in (weights[f"{layer}.1.weight"], weights[f"{layer}.1.bias"], mean, variance)
        )
        x = torch.relu((x - mean) / torch.sqrt(variance + 1e-5) * scale + shift)
    return x.mean(dim=(2, 3)) @ weights["fc.weight"].T + weights["fc.bias"]


def by_hand(*, mean_of_entropies: bool = False, forget: bool = True) -> list[Tensor]:
    """The probabilities of each image."""
    stats, weights, answers = dict(settled().named_buffers()), weights_of(tiny()), []
    for image, key in zip(IMAGES, input_hashes(IMAGES), strict=True):
        rng = Seed(3).child("copies", key.hex()).numpy()
        copies = np.stack([augmix(image, "pad-crop-flip", rng) for _ in range(COPIES)])
        leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
        p = blended(leaves, stats, pixels(copies)).softmax(dim=1)
        mean = p.mean(dim=0)
        loss = -(p * p.log()).sum(dim=1).mean() if mean_of_entropies else -(mean * mean.log()).sum()
        slopes = torch.autograd.grad(loss, list(leaves.values()))
        moved = {name: weights[name] - LR * slope for name, slope in zip(leaves, slopes, strict=True)}
        answers.append(blended(moved, stats, pixels(image[None]))[0].softmax(dim=0))
        weights = weights if forget else moved
    return answers


def memo(**settings: Any) -> MEMO:
    return MEMO(**{"lr": LR, "n_augmentations": COPIES, "prior_strength": STRENGTH, **settings})


def test_answers_are_those_done_by_hand_and_wrong_versions_are_not() -> None:
    found = torch.tensor(scores(ready(memo(), settled()), [IMAGES])[0])
    torch.testing.assert_close(found, torch.stack(by_hand()), rtol=1e-3, atol=1e-5)
    for wrong in (by_hand(mean_of_entropies=True), by_hand(forget=False)):
        assert float((found - torch.stack(wrong)).abs().max()) > 0.01
    frozen = torch.stack([blended(weights_of(tiny()), dict(settled().named_buffers()), pixels(IMAGES[:1]))[0]])
    assert float((found[:1] - frozen.softmax(dim=1)).abs().max()) > 0.01  # answered after the step


def test_nothing_stays_and_an_image_has_the_same_answer_in_any_company() -> None:
    learner = ready(memo(optimizer="adam", momentum=0.9), settled())
    before = fingerprint(learner)
    together = learner.answer(IMAGES).scores
    assert fingerprint(learner) == before
    assert all(weight.grad is None for weight in learner.model.parameters())
    apart = [learner.answer(IMAGES[k : k + 1]).scores for k in (2, 0, 3, 1)]
    np.testing.assert_array_equal(np.concatenate(apart), together[[2, 0, 3, 1]])


def test_blended_statistics_by_hand_and_none_for_running_ones() -> None:
    layer = nn.BatchNorm1d(1)
    x = torch.tensor([[1.0], [3.0]])  # mean 2, unbiased variance 2
    torch.testing.assert_close(BlendedBatchNorm(layer, 3)(x), (x - 0.5) / np.sqrt(1.25 + 1e-5))
    torch.testing.assert_close(BlendedBatchNorm(layer, 3)(x[:1]), x[:1] / np.sqrt(1 + 1e-5))
    assert layer.running_mean == torch.zeros(1)
    frozen = ready(Frozen(), settled()).predict(IMAGES).scores
    np.testing.assert_allclose(
        ready(memo(prior_strength=None, lr=0.0), settled()).predict(IMAGES).scores, frozen, atol=1e-6
    )
    assert np.abs(ready(memo(lr=0.0), settled()).predict(IMAGES).scores - frozen).max() > 0.01


def test_all_passes_are_counted_also_in_evaluation() -> None:
    model, meter = tiny(), MacCounter()
    meter.attach(model)
    learner = ready(memo(), model)
    each, first = 16 * 4 * 27 + 4 * 4 * 36 + 20, 16 * 4 * 27
    learner.answer(IMAGES)
    assert meter.forward == 4 * (COPIES + 1) * each
    assert meter.backward == 4 * COPIES * (2 * each - first)
    meter.probing = True
    learner.predict(IMAGES)
    assert meter.probe_macs == meter.forward + meter.backward == 4 * ((COPIES + 1) * each + COPIES * (2 * each - first))


def test_the_defaults_are_those_for_imagenet_and_what_does_not_fit_is_refused() -> None:
    learner = ready(MEMO())
    assert (learner.lr, learner.n_augmentations, learner.prior_strength) == (2.5e-4, 64, 16)
    with pytest.raises(RequirementError, match="classification task"):
        MEMO().prepare(tiny(), Regression())
    learner.prepare(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 5)), TASK)
    with pytest.raises(UserError, match="memo augments images in bytes"):
        learner.answer(np.zeros((4, 3), np.float32))


def test_large_images_are_cropped_and_resized() -> None:
    pytest.importorskip("PIL")
    image = np.random.default_rng(0).integers(0, 255, (80, 70, 3)).astype(np.uint8)
    copies = ready(memo())._copies(image, "key")
    rng = Seed(3).child("copies", "key").numpy()
    np.testing.assert_allclose(copies[0], pixels(augmix(image, "crop-flip", rng)[None])[0], atol=1e-6)
