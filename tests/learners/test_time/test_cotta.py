"""CoTTA against its first updates written out by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.learners.test_time.cotta import CoTTA, symmetric_cross_entropy
from driftline.seeds import Seed
from driftline.testing import check_learner
from driftline.training.cotta_augmentations import cotta_augment
from driftline.training.mac_counter import MacCounter

from ..tiny import BATCHES, NORM, TASK, far, forward, pixels, ready, scores, sgd, step, tiny, weights_of

EVERY = list(weights_of(tiny()))
THREE = BATCHES[:3]


def by_hand(
    names: list[str], *, lr: float, teacher_momentum: float, restore_probability: float, n_augmentations: int = 0
) -> tuple[list[Tensor], dict[str, Tensor], dict[str, Tensor]]:
    """The teacher's outputs, the student and the teacher in the end; `copies` 0: every batch is sure enough."""
    first = weights_of(tiny())
    student, teacher, output, move = dict(first), dict(first), [], sgd(lr, nesterov=True)
    for k, images in enumerate(THREE):
        x, seed = pixels(images), Seed(3).child("step", k)
        if n_augmentations:
            random = seed.child("copies").torch()
            lead = torch.stack([forward(teacher, cotta_augment(x, random)) for _ in range(n_augmentations)]).mean(dim=0)
        else:
            lead = forward(teacher, x)
        output.append(lead)
        leaves = {name: student[name].clone().requires_grad_() for name in names}
        p, q = torch.softmax(forward({**student, **leaves}, x), dim=1), torch.softmax(lead, dim=1)
        loss = (-0.5 * q * torch.log(p) - 0.5 * p * torch.log(q)).sum(dim=1).mean()
        student = step(student, loss, leaves, move)
        teacher = {
            name: teacher_momentum * slow + (1 - teacher_momentum) * student[name] for name, slow in teacher.items()
        }
        random = seed.child("forget").torch()
        for name in names:
            back = torch.rand(student[name].shape, generator=random) < restore_probability
            student[name] = torch.where(back, first[name], student[name])
    return output, student, teacher


def must_end_so(learner: CoTTA, output: list[Tensor], student: dict[str, Tensor], teacher: dict[str, Tensor]) -> None:
    for score, outputs in zip(scores(learner, THREE), output, strict=True):
        np.testing.assert_allclose(score, outputs.softmax(dim=1).numpy(), rtol=2e-3, atol=2e-5)
    for model, weights in ((learner.model, student), (learner.teacher, teacher)):
        for name, weight in model.named_parameters():
            torch.testing.assert_close(weight.detach(), weights[name], rtol=2e-3, atol=2e-5)


CASES: dict[str, tuple[list[str], dict[str, Any], dict[str, Any]]] = {
    "sure": (NORM, {"confidence_threshold": 0.0}, {}),
    "unsure": (NORM, {"confidence_threshold": 1.0, "n_augmentations": 3}, {"n_augmentations": 3}),
    "all weights": (EVERY, {"confidence_threshold": 0.0, "parameters": "all"}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_updates_are_those_done_by_hand(case: str) -> None:
    names, settings, options = CASES[case]
    output, student, teacher = by_hand(names, lr=0.05, teacher_momentum=0.8, restore_probability=0.3, **options)
    must_end_so(
        ready(CoTTA(lr=0.05, teacher_momentum=0.8, restore_probability=0.3, **settings)), output, student, teacher
    )
    start = weights_of(tiny())
    moved = torch.cat([(student[name] - start[name]).flatten() for name in names])
    assert 0 < int((moved == 0).sum()) < len(moved)  # some were restored, some were not
    assert far(teacher, start, names) > 1e-3
    assert far(teacher, student, names) > 1e-3


def test_the_settings_are_those_of_the_study() -> None:
    learner = CoTTA()
    output = (
        learner.lr,
        learner.momentum,
        learner.confidence_threshold,
        learner.n_augmentations,
        learner.teacher_momentum,
        learner.restore_probability,
    )
    assert output == (0.01, 0.9, 0.1, 32, 0.999, 0.001)
    assert ready(learner).optim.param_groups[0]["nesterov"]
    assert learner.parameters == "norm"


def test_answers_are_the_teachers_and_not_the_students() -> None:
    learner = ready(CoTTA(lr=0.3, restore_probability=0.0, confidence_threshold=0.0))
    scores(learner, THREE)
    x = pixels(BATCHES[3])
    student, teacher = (forward(weights_of(m), x).softmax(dim=1) for m in (learner.model, learner.teacher))
    before, answer = learner.predict(BATCHES[3]).scores, learner.answer(BATCHES[3]).scores
    np.testing.assert_array_equal(before, answer)
    np.testing.assert_allclose(answer, teacher, rtol=2e-3, atol=2e-5)
    assert np.abs(answer - student.numpy()).max() > 0.01


def test_what_decides_about_copies_is_the_first_network() -> None:
    first = forward(weights_of(tiny()), pixels(BATCHES[0])).softmax(dim=1).amax(dim=1).mean()
    for threshold, passes in ((float(first) - 1e-3, 3), (float(first) + 1e-3, 2 + 4)):
        model, meter = tiny(), MacCounter()
        meter.attach(model)
        learner = ready(CoTTA(confidence_threshold=threshold, n_augmentations=4), model)
        learner.answer(BATCHES[0])
        once = 9 * 16 * 4 * 27 + 9 * 4 * 4 * 36 + 9 * 20
        assert meter.forward == passes * once  # student, first network, and the teacher once or for each copy


def test_asking_about_copies_changes_nothing_and_says_the_same() -> None:
    learner = ready(
        CoTTA(confidence_threshold=1.0, n_augmentations=2, batch=5)
    )  # nine inputs: two parts, each with copies of its own
    asked = [learner.predict(BATCHES[0]).scores for _ in range(2)]
    np.testing.assert_array_equal(*asked)
    for group in learner.optim.param_groups:
        group["lr"] = 0.0
    np.testing.assert_array_equal(learner.answer(BATCHES[0]).scores, asked[0])


def test_the_share_that_is_restored() -> None:
    learner = ready(
        CoTTA(lr=0.0, restore_probability=0.25), nn.Sequential(nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(108, 5))
    )
    learner._weights = [nn.Parameter(torch.ones(20_000))]
    learner._initial_weights = [torch.zeros(20_000)]
    learner._update_teacher_and_restore()
    assert float(learner._weights[0].detach().mean()) == pytest.approx(0.75, abs=0.015)


def test_the_loss_is_symmetric_and_least_where_both_agree_and_are_sure() -> None:
    random = torch.Generator().manual_seed(0)
    a, b = torch.randn(4, 5, generator=random), torch.randn(4, 5, generator=random)
    torch.testing.assert_close(symmetric_cross_entropy(a, b), symmetric_cross_entropy(b, a))
    p = a.softmax(dim=1)
    torch.testing.assert_close(symmetric_cross_entropy(a, a), -(p * p.log()).sum(dim=1))
    assert (symmetric_cross_entropy(50 * a, 50 * a) < symmetric_cross_entropy(a, a)).all()


def test_inputs_that_are_no_images_are_refused() -> None:
    learner = CoTTA()
    learner.prepare(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 5)), TASK)
    with pytest.raises(UserError, match="these inputs are not images"):
        learner.answer(np.zeros((4, 3), np.float32))


def test_it_keeps_the_contract_with_copies_and_all_weights() -> None:
    check_learner(
        partial(CoTTA, confidence_threshold=1.0, n_augmentations=2, parameters="all", restore_probability=0.1)
    )
