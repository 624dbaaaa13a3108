"""NOTE: the memory and updates by hand."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import RequirementError
from driftline.learners.test_time.note import NOTE, BalancedReservoir, mean_entropy
from driftline.models.iabn import InstanceAwareBatchNorm
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing import check_learner
from driftline.testing.fixtures import small_network
from driftline.training.mac_counter import MacCounter

from ..tiny import BATCHES, NORM, adam, far, pixels, ready, scores, settled, step, tiny, weights_of

LR, RATE, SHRINKAGE, SIZE, EVERY = 0.05, 0.3, 1.0, 8, 12
Stats = dict[str, Tensor]


def note(**settings: Any) -> NOTE:
    given = {"lr": LR, "statistics_rate": RATE, "shrinkage": SHRINKAGE, "memory_size": SIZE, "update_every": EVERY}
    return NOTE(**{**given, **settings})


def iabn(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Normalize image by image and channel by channel, by definition."""
    rows, n = [], x.shape[2] * x.shape[3]
    for image in x:
        channels = []
        for values, m, v in zip(image, mean, variance, strict=True):
            own_m, own_v = values.mean(), ((values - values.mean()) ** 2).sum() / (n - 1)
            bound_m = SHRINKAGE * ((v + 1e-5) / n) ** 0.5
            bound_v = SHRINKAGE * (v + 1e-5) * (2 / (n - 1)) ** 0.5
            d_m, d_v = own_m - m, own_v - v
            corrected_m = m + d_m.sign() * (d_m.abs() - bound_m).clamp(min=0)
            corrected_v = (v + d_v.sign() * (d_v.abs() - bound_v).clamp(min=0)).clamp(min=0)
            channels.append((values - corrected_m) / (corrected_v + 1e-5) ** 0.5)
        rows.append(torch.stack(channels))
    return torch.stack(rows)


def network(weights: Stats, stats: Stats, x: Tensor, *, training: bool = False) -> tuple[Tensor, Stats]:
    """Outputs and statistics after them."""
    moved = dict(stats)
    for layer in ("layer1", "layer2"):
        x = nn.functional.conv2d(x, weights[f"{layer}.0.weight"])
        mean, variance = stats[f"{layer}.mean"], stats[f"{layer}.var"]
        if training:
            values = x.transpose(0, 1).flatten(1)
            batch_mean, batch_variance = values.mean(dim=1), values.var(dim=1, correction=1)
            moved[f"{layer}.mean"] = (1 - RATE) * mean + RATE * batch_mean.detach()
            moved[f"{layer}.var"] = (1 - RATE) * variance + RATE * batch_variance.detach()
            mean, variance = batch_mean, batch_variance
        scale, shift = (weights[f"{layer}.1.{name}"].view(1, -1, 1, 1) for name in ("weight", "bias"))
        x = torch.relu(iabn(x, mean, variance) * scale + shift)
    return x.mean(dim=(2, 3)) @ weights["fc.weight"].T + weights["fc.bias"], moved


def by_hand() -> tuple[list[Tensor], Stats]:
    """The answers and the weights after four batches; the memory is the class tested below."""
    buffers = dict(settled().named_buffers())
    stats = {f"layer{k}.{n}": buffers[f"layer{k}.1.running_{n}"] for k in (1, 2) for n in ("mean", "var")}
    weights, move, answers = weights_of(tiny()), adam(LR), []
    memory = BalancedReservoir(SIZE, 5, Seed(3).child("memory"))
    for number, image in enumerate(pixels(np.concatenate(BATCHES[:4])), start=1):
        h, _ = network(weights, stats, image[None])
        answers.append(h[0])
        memory.add(image, int(h.argmax()))
        if number % EVERY:
            continue
        leaves = {name: weights[name].clone().requires_grad_() for name in NORM}
        out, stats = network({**weights, **leaves}, stats, memory.content(), training=True)
        p = out.softmax(dim=1)
        weights = step(weights, -(p * (p + 1e-6).log()).sum() / (5 * len(out)), leaves, move)
    return answers, weights


def test_the_first_updates_are_those_done_by_hand() -> None:
    answers, weights = by_hand()
    learner = ready(note(), settled())
    expected = torch.stack(answers).softmax(dim=1)
    np.testing.assert_allclose(np.concatenate(scores(learner, BATCHES[:4])), expected, rtol=2e-3, atol=2e-5)
    assert far(weights_of(learner.model), weights) < 1e-3
    assert far(weights, weights_of(tiny())) > 0.01
    whole = ready(note(update_every=100), settled()).answer(np.concatenate(BATCHES[:4])).scores
    assert np.abs(whole[:EVERY] - expected[:EVERY].numpy()).max() < 1e-4  # before the first update
    assert np.abs(whole - expected.numpy()).max() > 0.01  # an update in mid-batch counts from the next image on


def test_images_one_by_one_are_as_good_as_a_batch() -> None:
    together, apart = (ready(note(), settled()) for _ in range(2))
    for images in BATCHES[:3]:
        whole = together.answer(images).scores
        parts = np.concatenate([apart.answer(images[k : k + 1]).scores for k in range(9)])
        np.testing.assert_allclose(whole, parts, rtol=1e-3, atol=1e-5)


def filled(memory: BalancedReservoir, *labels: int) -> list[int]:
    for label in labels:
        memory.add(torch.full((1, 1, 1), float(memory.n_seen.sum())), label)
    return np.bincount(memory.labels, minlength=3).tolist()


def test_the_memory_becomes_balanced_and_stays_so() -> None:
    memory = BalancedReservoir(6, 3, Seed(0))
    assert filled(memory, 0, 0, 0, 0, 0, 0) == [6, 0, 0]
    assert filled(memory, 1) == [5, 1, 0]  # a rare class always enters, in the place of the most numerous
    assert filled(memory, 1, 2, 2) == [2, 2, 2]
    assert filled(memory, *[0] * 50) == [2, 2, 2]  # a stream of one class changes nothing but its own places
    assert memory.n_seen.tolist() == [56, 2, 2]
    kept = {int(memory.images[row]) for row in np.flatnonzero(memory.labels != 0)}
    assert kept == {6, 7, 8, 9}


def test_within_a_class_every_image_is_as_likely() -> None:
    """A reservoir: of 12 images of one class, each is among the last 3 with probability 1/4."""
    counts = np.zeros(12)
    for seed in range(2000):
        memory = BalancedReservoir(3, 2, Seed(seed))
        filled(memory, *[0] * 12)
        counts[[int(image) for image in memory.content()]] += 1
    np.testing.assert_allclose(counts / 2000, 0.25, atol=4 * (0.25 * 0.75 / 2000) ** 0.5)


def test_each_class_is_a_reservoir_of_its_own() -> None:
    """Of four images of a rare class, each is among its two with probability 1/2, however many others came."""
    counts = np.zeros(26)
    for seed in range(1000):
        memory = BalancedReservoir(4, 2, Seed(seed))
        assert filled(memory, 0, 0, 1, 1, *[1] * 20, 0, 0)[:2] == [2, 2]  # a tie: each gives up one of its own
        counts[[int(image) for image in memory.content()]] += 1
    np.testing.assert_allclose(counts[[0, 1, 24, 25]] / 1000, 0.5, atol=4 * (0.25 / 1000) ** 0.5)


def test_of_several_most_numerous_classes_any_may_lose_an_image() -> None:
    left = np.array([filled(BalancedReservoir(4, 3, Seed(seed)), 0, 0, 1, 1, 2) for seed in range(400)])
    assert set(map(tuple, left)) == {(1, 2, 1), (2, 1, 1)}
    assert left[:, 0].mean() == pytest.approx(1.5, abs=4 * 0.5 / 400**0.5)


def test_the_loss_is_a_mean_over_classes_too() -> None:
    outputs = torch.zeros(3, 4)
    assert mean_entropy(outputs).item() == pytest.approx(np.log(4) / 4, abs=1e-5)


def test_64_single_passes_and_one_of_the_memory_with_its_backward_pass() -> None:
    model, meter = settled(), MacCounter()
    meter.attach(model)
    ready(note(update_every=9, memory_size=8), model).answer(BATCHES[0])
    each = 16 * 4 * 27 + 4 * 4 * 36 + 20
    assert (meter.forward, meter.backward) == ((9 + 8) * each, 8 * (4 * 4 * 36 + 20))


def test_a_converted_network_is_named_and_one_with_iabn_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "driftline"):
        learner = ready(note(), settled())
        assert [record.message for record in caplog.records] == [
            "note: NOTE's network was trained with batch norm, not with iabn: its layers are converted"
        ]
        caplog.clear()
        again = ready(note(shrinkage=9.0), learner.model)
    assert not caplog.records
    layers = [layer for layer in again.model.modules() if isinstance(layer, InstanceAwareBatchNorm)]
    assert [(layer.shrinkage, layer.momentum) for layer in layers] == [(SHRINKAGE, RATE)] * 2


def test_the_defaults_are_those_of_the_paper_and_what_does_not_fit_is_refused() -> None:
    learner = NOTE()
    assert (learner.lr, learner.optimizer, learner.memory_size, learner.update_every) == (1e-4, "adam", 64, 64)
    assert (learner.statistics_rate, learner.shrinkage) == (0.01, 4)
    with pytest.raises(RequirementError, match="classification task"):
        NOTE().prepare(tiny(), Regression())
    with pytest.raises(RequirementError, match="this network has none"):
        ready(NOTE(), nn.Sequential(nn.Flatten(), nn.Linear(3, 5)))


def test_it_keeps_the_contract_while_it_updates() -> None:
    check_learner(partial(NOTE, lr=0.05, memory_size=8, update_every=5), models=[small_network])
