"""RoTTA: memory, robust batch norm and updates by hand."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import RequirementError, UserError
from driftline.learners.frozen import Frozen
from driftline.learners.test_time.rotta import BalancedMemory, RoTTA
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing import check_learner
from driftline.training.cotta_augmentations import cotta_augment
from driftline.training.mac_counter import MacCounter
from driftline.training.robust_batch_norm import RobustBatchNorm

from ..tiny import BATCHES, NORM, TASK, adam, far, pixels, ready, scores, settled, step, tiny, weights_of

LR, RATE, KEEP, SIZE, EVERY = 0.05, 0.3, 0.8, 7, 6
Stats = dict[str, Tensor]


def test_the_worked_example_of_scores_and_weights() -> None:
    memory = BalancedMemory(64, 10)
    items = [(0, 0.2), (64, 0.2), (64, 0.05), (0, 1.0)]
    found = [memory.score({"age": age, "uncertainty": uncertainty}) for age, uncertainty in items]
    assert found == pytest.approx([0.5869, 0.8179, 0.7528, 0.9343], abs=1e-4)
    weights = torch.sigmoid(-torch.tensor([1.0, 32, 64, 128]) / 64)
    torch.testing.assert_close(weights, torch.tensor([0.4961, 0.3775, 0.2689, 0.1192]), atol=1e-4, rtol=0)


def test_robust_batch_norm_moves_before_it_normalizes_and_only_in_training_mode() -> None:
    plain = nn.BatchNorm2d(1)
    layer, x = RobustBatchNorm(plain, 0.05), torch.tensor([0.0, 2.0]).view(2, 1, 1, 1)
    layer.training = True
    for mean, variance in ((0.05, 1.0), (0.0975, 1.0), (0.1426, 1.0)):  # the batch: mean 1, biased variance 1
        out = layer(x)
        assert layer.running_mean.item() == pytest.approx(mean, abs=1e-4)
        assert layer.running_var.item() == pytest.approx(variance)
        torch.testing.assert_close(out, (x - layer.running_mean.item()) / math.sqrt(variance + 1e-5))
    layer.training = False
    kept = layer.running_mean.clone()
    torch.testing.assert_close(layer(x + 5), (x + 5 - kept) / math.sqrt(1 + 1e-5))
    assert torch.equal(layer.running_mean, kept)


def image(k: float) -> Tensor:
    return torch.full((1, 1, 1), float(k))


def joined(memory: BalancedMemory, *given: tuple[int, float]) -> list[float]:
    """The images in memory, by number, after these classes and uncertainties."""
    for label, uncertainty in given:
        number = getattr(memory, "given", 0)
        memory.given = number + 1  # type: ignore[attr-defined]
        memory.add(image(number), label, uncertainty)
    return sorted(memory.content()[0].flatten().tolist())


def test_a_class_with_its_share_gives_up_one_of_its_own_even_if_there_is_room() -> None:
    memory = BalancedMemory(4, 2)
    assert joined(memory, (0, 0.5), (0, 0.1), (0, 0.3)) == [1, 2]  # the least sure has left
    assert joined(memory, (0, 0.6)) == [1, 2]  # the new one is the least sure: dropped
    assert sorted(item["age"] for item in memory.items) == [2, 3]  # all age, also then
    assert joined(memory, (1, 0.6)) == [1, 2, 4]
    assert sorted(item["age"] for item in memory.items) == [1, 3, 4]  # those of other classes too


def test_a_full_memory_makes_room_in_the_most_numerous_class() -> None:
    memory = BalancedMemory(3, 2)  # 1.5 for each class: a class takes a second one
    assert joined(memory, (0, 0.1), (0, 0.3), (1, 0.6)) == [0, 1, 2]
    assert joined(memory, (1, 0.2)) == [0, 2, 3]  # of class 0 the least sure, not the least sure of all
    assert joined(memory, (1, 0.05)) == [0, 3, 4]


def test_an_old_sure_image_stays_before_a_new_unsure_one_and_leaves_for_a_sure_one() -> None:
    memory = BalancedMemory(1, 10)
    assert joined(memory, (3, 0.2), (3, 1.0)) == [0]
    assert joined(memory, (3, 0.2)) == [2]


def test_of_equals_the_last_one_leaves_and_a_new_one_is_dropped() -> None:
    memory = BalancedMemory(2, 1)
    memory.classes = 10  # room for .2 of each class: class 3 has it, and keeps two images
    memory.items = [{"row": row, "label": 3, "uncertainty": 0.5, "age": 4} for row in (0, 1)]
    memory.images = torch.stack([image(0), image(1)])
    memory.given = 2  # type: ignore[attr-defined]
    assert joined(memory, (3, 0.1)) == [0, 2]
    for item in memory.items:
        item["age"] = 0
    assert joined(memory, (3, 0.5)) == [0, 2]


def robust(weights: Stats, stats: Stats, x: Tensor, rate: float = 0.0) -> tuple[Tensor, Stats]:
    """The network and its statistics, moved towards the batch's by `rate` before they are used."""
    moved = {}
    for layer in ("layer1", "layer2"):
        x = nn.functional.conv2d(x, weights[f"{layer}.0.weight"])
        mean, variance = stats[f"{layer}.mean"], stats[f"{layer}.var"]
        if rate:
            batch = x.mean(dim=(0, 2, 3))
            spread = ((x - batch.view(1, -1, 1, 1)) ** 2).mean(dim=(0, 2, 3))
            mean, variance = (1 - rate) * mean + rate * batch, (1 - rate) * variance + rate * spread
        moved |= {f"{layer}.mean": mean.detach(), f"{layer}.var": variance.detach()}
        scale, shift, mean, variance = (
            v.view(1, -1, 1, 1) for v in (weights[f"{layer}.1.weight"], weights[f"{layer}.1.bias"], mean, variance)
        )
        x = torch.relu((x - mean) / torch.sqrt(variance + 1e-5) * scale + shift)
    return x.mean(dim=(2, 3)) @ weights["fc.weight"].T + weights["fc.bias"], moved


def by_hand(*, average_statistics: bool = False) -> tuple[list[Tensor], Stats, Stats]:
    """The teacher's answers, the student's and the teacher's weights; the memory is the class tested above."""
    first = {name: buffer.clone() for name, buffer in settled().named_buffers()}
    stats = {f"layer{k}.{n}": first[f"layer{k}.1.running_{n}"] for k in (1, 2) for n in ("mean", "var")}
    student, teacher, ours, theirs = weights_of(tiny()), weights_of(tiny()), dict(stats), dict(stats)
    memory, move, answers, seen = BalancedMemory(SIZE, 5), adam(LR), [], 0
    for images in BATCHES[:4]:
        x = pixels(images)
        h, _ = robust(teacher, theirs, x)
        answers.append(h)
        p = h.softmax(dim=1)
        for i in range(9):
            memory.add(x[i], int(p[i].argmax()), float(-(p[i] * p[i].clamp(min=1e-30).log()).sum()))
            seen += 1
            if seen % EVERY:
                continue
            held, ages = memory.content()
            target, theirs = robust(teacher, theirs, held, RATE)
            leaves = {name: student[name].clone().requires_grad_() for name in NORM}
            mixed = cotta_augment(held, Seed(3).child("augmentation", seen).torch())
            out, ours = robust({**student, **leaves}, ours, mixed, RATE)
            loss = torch.zeros(())
            for row, age, lead in zip(out, ages.tolist(), target.softmax(dim=1), strict=True):
                a = age / SIZE
                loss = loss - math.exp(-a) / (1 + math.exp(-a)) * (lead * row.log_softmax(dim=0)).sum() / len(held)
            student = step(student, loss, leaves, move)
            teacher = {name: KEEP * slow + (1 - KEEP) * student[name] for name, slow in teacher.items()}
            if average_statistics:
                theirs = {name: KEEP * slow + (1 - KEEP) * ours[name] for name, slow in theirs.items()}
    return answers, student, teacher


def rotta(**settings: Any) -> RoTTA:
    given = {"lr": LR, "statistics_rate": RATE, "teacher_momentum": KEEP, "memory_size": SIZE, "update_every": EVERY}
    return RoTTA(**{**given, **settings})


def test_the_first_updates_are_those_done_by_hand() -> None:
    answers, student, teacher = by_hand()
    learner = ready(rotta(), settled())
    for score, outputs in zip(scores(learner, BATCHES[:4]), answers, strict=True):
        np.testing.assert_allclose(score, outputs.softmax(dim=1), rtol=2e-3, atol=2e-5)
    for model, expected in ((learner.model, student), (learner.teacher, teacher)):
        assert far(weights_of(model), expected) < 1e-3
    assert far(student, teacher) > 0.01  # answers of the student would differ
    with torch.no_grad():
        asked = learner.teacher(pixels(BATCHES[4])).softmax(dim=1)
    np.testing.assert_allclose(learner.predict(BATCHES[4]).scores, asked, rtol=1e-4, atol=1e-6)
    wrong = by_hand(average_statistics=True)[0]
    assert max(float((a - b).abs().max()) for a, b in zip(answers, wrong, strict=True)) > 0.01


def test_it_answers_by_running_statistics_before_it_updates() -> None:
    learner, frozen = ready(rotta(), settled()), ready(Frozen(), settled())
    expected = frozen.predict(BATCHES[0]).scores
    np.testing.assert_allclose(learner.answer(BATCHES[0]).scores, expected, rtol=1e-4, atol=1e-6)
    assert np.abs(learner.predict(BATCHES[0]).scores - expected).max() > 1e-3


def test_images_one_by_one_are_as_good_as_a_batch() -> None:
    together, apart = (ready(rotta(update_every=9), settled()) for _ in range(2))
    for images in BATCHES[:3]:
        whole = together.answer(images).scores
        parts = np.concatenate([apart.answer(images[k : k + 1]).scores for k in range(9)])
        np.testing.assert_allclose(whole, parts, rtol=1e-3, atol=1e-5)
    assert far(weights_of(together.teacher), weights_of(tiny())) > 1e-3


def test_three_forward_passes_and_one_backward_pass_for_64_images() -> None:
    model, meter = tiny(), MacCounter()
    meter.attach(model)
    ready(rotta(update_every=9, memory_size=50), model).answer(BATCHES[0])
    each = 16 * 4 * 27 + 4 * 4 * 36 + 20
    assert meter.forward == 3 * 9 * each
    assert meter.backward == 9 * (4 * 4 * 36 + 20)


def test_the_defaults_are_those_of_the_paper_and_what_does_not_fit_is_refused() -> None:
    learner = ready(RoTTA())
    assert (learner.lr, learner.momentum, learner.memory_size, learner.update_every) == (1e-3, 0.9, 64, 64)
    assert (learner.statistics_rate, learner.teacher_momentum, learner.optimizer) == (0.05, 0.999, "adam")
    with pytest.raises(RequirementError, match="classification task"):
        RoTTA().prepare(tiny(), Regression())
    learner.prepare(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 5)), TASK)
    with pytest.raises(UserError, match="these inputs are not images"):
        learner.answer(np.zeros((4, 3), np.float32))


def test_it_keeps_the_contract_while_it_updates() -> None:
    check_learner(partial(RoTTA, lr=0.05, memory_size=8, update_every=5))
