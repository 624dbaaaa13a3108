"""Learning without Forgetting: what is distilled, about which classes, and at which temperature."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.online.lwf import LwF, distillation
from driftline.learners.online.standard_training import StandardTraining
from driftline.testing import check_learner, digest
from driftline.testing.fixtures import small_network

from ..labelled_streams import metered, ready, small, some, streamed, unlabelled

UPSTREAM = some(20, (0, 1, 2), seed=9)  # class 3 is novel


def trained(samples: Any, **settings: Any) -> Any:
    learner = ready(LwF(train_every=len(samples), epochs=1, batch=99, **settings), upstream=UPSTREAM)
    learner.learn(samples.x, samples.y)
    return learner


def by_hand(teacher: list[float], new: list[float], temperature: float) -> float:
    p, q = np.exp(np.array(teacher) / temperature), np.exp(np.array(new) / temperature)
    return float(-(p / p.sum() * np.log(q / q.sum())).sum())


def test_distillation_by_hand() -> None:
    teacher, new = [[1.0, 3.0, -1.0], [0.0, 0.5, 2.0]], [[0.0, 1.0, 2.0], [1.0, 0.0, 4.0]]
    expected = np.mean([by_hand(a, b, 2.0) for a, b in zip(teacher, new, strict=True)])
    found = float(distillation(torch.tensor(new), torch.tensor(teacher), 2.0))
    assert found == pytest.approx(expected, abs=1e-6)
    assert found != pytest.approx(np.mean([by_hand(a, b, 1.0) for a, b in zip(teacher, new, strict=True)]), abs=1e-2)
    assert found != pytest.approx(np.mean([by_hand(b, a, 2.0) for a, b in zip(teacher, new, strict=True)]), abs=1e-2)


@pytest.mark.parametrize("classes", [1, 0])
def test_one_class_or_none_teaches_nothing(classes: int) -> None:
    assert float(distillation(torch.ones(3, classes), torch.ones(3, classes), 2.0)) == 0


def first_step(classes: list[int], temperature: float, distillation_weight: float) -> torch.Tensor:
    """The network after one step on some(8), distilled about these classes, written with autograd alone."""
    samples, model = some(8, (0, 2, 3)), small()
    with torch.no_grad():
        model[3].weight[3:], model[3].bias[3:] = 0, 0
    teacher = copy.deepcopy(model).eval()(torch.from_numpy(samples.x)).detach()[:, classes]
    logits = model.train()(torch.from_numpy(samples.x))
    loss = -logits.log_softmax(1)[range(8), samples.y].mean()
    soft = (teacher / temperature).softmax(1)
    loss = loss - distillation_weight * (soft * (logits[:, classes] / temperature).log_softmax(1)).sum(1).mean()
    (slope,) = torch.autograd.grad(loss, [model[0].weight])
    return (model[0].weight - 0.01 * (slope + 1e-4 * model[0].weight)).detach()


@pytest.mark.parametrize("distillation_weight", [1.0, 0.25])
def test_the_first_step_by_hand(distillation_weight: float) -> None:
    """Classes 0, 2 and 3 are revealed; the old network knows 0, 1 and 2: it teaches about 0 and 2."""
    samples = some(8, (0, 2, 3))
    assert set(samples.y.tolist()) == {0, 2, 3}
    found = trained(samples, distillation_weight=distillation_weight).model[0].weight
    torch.testing.assert_close(found, first_step([0, 2], 2.0, distillation_weight), rtol=1e-5, atol=1e-7)
    for wrong in ([0, 1, 2], [0, 2, 3], [0, 1, 2, 3]):
        assert not torch.allclose(found, first_step(wrong, 2.0, distillation_weight), rtol=1e-5, atol=1e-7)
    assert not torch.allclose(found, first_step([0, 2], 1.0, distillation_weight), rtol=1e-5, atol=1e-7)


def test_without_weight_it_is_standard_training() -> None:
    samples = some(12)
    plain = ready(StandardTraining(train_every=5), upstream=UPSTREAM)
    plain.learn(samples.x, samples.y)
    same = ready(LwF(train_every=5, distillation_weight=0.0), upstream=UPSTREAM)
    same.learn(samples.x, samples.y)
    assert digest(dict(same.model.state_dict())) == digest(dict(plain.model.state_dict()))


def test_an_old_network_that_knows_no_class_teaches_nothing() -> None:
    """After pretraining without labels its even outputs are no knowledge."""
    samples = some(12)
    plain, same = (ready(kind(train_every=6), unlabelled(), UPSTREAM) for kind in (StandardTraining, LwF))
    for learner in (plain, same):
        learner.learn(samples.x, samples.y)
    assert digest(dict(same.model.state_dict())) == digest(dict(plain.model.state_dict()))


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(UserError, match="temperature=0"):
        ready(LwF(temperature=0))


def test_the_old_network_never_changes_and_its_passes_are_billed() -> None:
    samples, (model, meter) = some(8), metered(small())
    learner = ready(LwF(train_every=4, epochs=2), model, UPSTREAM)
    before = digest(dict(learner.teacher.state_dict()))
    streamed(learner, samples)
    assert digest(dict(learner.teacher.state_dict())) == before
    once = 5 * 6 + 6 * 4
    assert meter.forward == 8 * once + 24 * 2 * once
    assert meter.backward == 24 * (5 * 6 + 2 * 6 * 4)


def test_answers_in_turn_are_those_given_one_by_one() -> None:
    samples = some(60)
    fast, slow = (ready(LwF(train_every=7, batch=16), upstream=UPSTREAM) for _ in range(2))
    slow.answer_one_by_one = partial(Learner.answer_one_by_one, slow)
    np.testing.assert_array_equal(streamed(fast, samples, (11,)).prediction, streamed(slow, samples, (11,)).prediction)


def test_it_keeps_the_contract() -> None:
    check_learner(partial(LwF, train_every=25, epochs=1, batch=13), models=[small_network])
