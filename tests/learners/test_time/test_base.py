"""Methods that adapt by normalisation layers, against their first updates written out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from driftline import models
from driftline.errors import UserError
from driftline.learners.frozen import Frozen
from driftline.learners.periodic_reset import PeriodicReset
from driftline.learners.test_time.bn import BN
from driftline.learners.test_time.cotta import CoTTA
from driftline.learners.test_time.cpl import CPL
from driftline.learners.test_time.eata import EATA
from driftline.learners.test_time.eta import ETA
from driftline.learners.test_time.rpl import RPL
from driftline.learners.test_time.slr import SLR
from driftline.learners.test_time.tent import Tent
from driftline.models.resnet import Bottleneck, ResNet
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.training.mac_counter import MacCounter
from driftline.training.normalization import affine_parameters, norm_layers

from ..tiny import (
    BATCHES,
    NORM,
    adam,
    adapted_by_hand,
    far,
    forward,
    must_agree,
    pixels,
    ready,
    scores,
    sgd,
    tiny,
    weights_of,
)

TWO = BATCHES[:2]


def tent_loss(h: Tensor) -> Tensor:
    p = torch.exp(h) / torch.exp(h).sum(dim=1, keepdim=True)
    return sum((-p[i] * torch.log(p[i])).sum() for i in range(len(h))) / len(h)  # type: ignore[return-value]


def rpl_loss(h: Tensor) -> Tensor:
    p = torch.softmax(h, dim=1)
    return sum((1 - p[i, int(h[i].argmax())] ** 0.8) / 0.8 for i in range(len(h))) / len(h)  # type: ignore[return-value]


def solved(p: Tensor, eps: float) -> Tensor:
    return torch.linalg.solve(torch.eye(len(p)) + eps * torch.diag(p) - eps * torch.outer(p, p), p)


def cpl_loss(h: Tensor, eps: float = 8.0, held: bool = False) -> Tensor:
    total = torch.zeros(())
    for row in h:
        p = torch.softmax(row, dim=0)
        y = solved(p, eps).detach() if held else solved(p, eps)
        total = total + torch.logsumexp(row, dim=0) - (y * row - eps * y * (1 - p)).sum()
    return total / len(h)


class SLRLoss:
    def __init__(self) -> None:
        self.mean = torch.full((5,), 0.2)

    def __call__(self, h: Tensor) -> Tensor:
        p = torch.softmax(h, dim=1)
        mean = 0.9 * self.mean + 0.1 * p.mean(dim=0)
        self.mean = mean.detach()
        ratio = torch.zeros(())
        for i in range(len(h)):
            for c in range(5):
                others = torch.cat([h[i, :c], h[i, c + 1 :]])
                ratio = ratio + p[i, c] * (-h[i, c] + torch.log(torch.exp(others).sum())) / len(h)
        return (mean * torch.log(mean / 0.2)).sum() + 0.025 * ratio


CASES: list[tuple[Any, Any, Any, list[str]]] = [
    (Tent(lr=0.3), tent_loss, sgd(0.3), NORM),
    (RPL(lr=0.3), rpl_loss, sgd(0.3), NORM),
    (CPL(lr=0.02), cpl_loss, sgd(0.02), NORM),
    (SLR(lr=0.1), SLRLoss(), adam(0.1), NORM[:2]),
]


@pytest.mark.parametrize(("learner", "loss", "move", "names"), CASES, ids=lambda v: type(v).__name__)
def test_the_first_three_updates_are_those_done_by_hand(learner: Any, loss: Any, move: Any, names: list[str]) -> None:
    outputs, weights = adapted_by_hand(loss, move, BATCHES[:3], names)
    assert far(weights, weights_of(tiny()), names) > 0.02  # something is being tested
    must_agree(ready(learner), BATCHES[:3], outputs, weights)


def test_the_defaults_are_those_of_the_study() -> None:
    assert [(m.lr, m.momentum) for m in (Tent(), RPL(), CPL(), SLR())] == [
        (2.5e-4, 0.9),
        (5e-4, 0.9),
        (1e-3, 0.9),
        (6e-4, 0.9),
    ]
    assert (RPL().q, CPL().eps, SLR().delta, SLR().kappa) == (0.8, 8.0, 0.025, 0.9)


def test_bn_answers_by_the_batch_and_changes_nothing() -> None:
    learner, model = ready(BN()), tiny()
    for images in TWO:
        by_hand = forward(weights_of(model), pixels(images)).softmax(dim=1)
        np.testing.assert_allclose(learner.answer(images).scores, by_hand, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(learner.predict(images).scores, by_hand, rtol=1e-4, atol=1e-6)
    assert far(weights_of(learner.model), weights_of(model)) == 0
    assert not list(learner.model.buffers())  # a snapshot must not bring running statistics back
    frozen = ready(Frozen()).predict(TWO[0]).scores
    assert np.abs(frozen - learner.predict(TWO[0]).scores).max() > 0.05  # running statistics answer otherwise


def test_predict_goes_by_the_batch_too_after_updates() -> None:
    learner = ready(Tent(lr=0.3))
    scores(learner, TWO)
    by_hand = forward(weights_of(learner.model), pixels(BATCHES[3])).softmax(dim=1)
    np.testing.assert_allclose(learner.predict(BATCHES[3]).scores, by_hand, rtol=1e-3, atol=1e-5)


def test_answers_are_those_from_before_the_update() -> None:
    learner = ready(Tent(lr=0.3))
    before, answer, after = (ask(TWO[0]).scores for ask in (learner.predict, learner.answer, learner.predict))
    np.testing.assert_array_equal(before, answer)
    assert np.abs(after - answer).max() > 1e-3  # a method that answered after its update would say this


def test_adapt_alone_is_answer_without_the_answers() -> None:
    one, other = ready(Tent(lr=0.3)), ready(Tent(lr=0.3))
    one.answer(TWO[0])
    other.adapt(TWO[0])
    assert far(weights_of(one.model), weights_of(other.model)) == 0


def test_without_gradients_through_y_cpl_would_not_move_at_all() -> None:
    _, held = adapted_by_hand(lambda h: cpl_loss(h, held=True), sgd(0.02), TWO)
    _, right = adapted_by_hand(cpl_loss, sgd(0.02), TWO)
    assert far(held, weights_of(tiny())) < 1e-5  # y is where the loss is stationary in h
    assert far(right, weights_of(tiny())) > 0.02


def test_slr_leaves_the_last_block_alone_but_not_its_statistics() -> None:
    learner = ready(SLR(lr=0.1))
    scores(learner, TWO)
    start, now = weights_of(tiny()), weights_of(learner.model)
    assert far(start, now, NORM[2:]) == 0
    assert far(start, now, NORM[:2]) > 0.02
    assert learner.model.layer2[1].running_mean is None


def layered(norm: nn.Module) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)
        )


@pytest.mark.parametrize("norm", [nn.GroupNorm(2, 4), nn.LayerNorm([4, 4, 4])], ids=["group", "layer"])
def test_layer_and_group_norm_are_adapted_too_even_to_one_input(norm: nn.Module) -> None:
    learner = ready(Tent(lr=0.5), layered(norm))
    one, many = learner.predict(BATCHES[0][:1]), learner.predict(BATCHES[0])
    np.testing.assert_allclose(one.scores, many.scores[:1], rtol=1e-5)  # no sample depends on another
    before = norm.weight.detach().clone()
    learner.answer(BATCHES[0][:1])
    assert not torch.equal(before, norm.weight)


def test_networks_without_batch_norm_are_nothing_for_bn() -> None:
    with pytest.raises(UserError, match="it would not adapt"):
        ready(BN(), layered(nn.GroupNorm(2, 4)))


def test_networks_without_normalisation_are_refused() -> None:
    plain = nn.Sequential(nn.Flatten(), nn.Linear(108, 5))
    with pytest.raises(UserError, match="this network has none"):
        ready(Tent(), plain)
    with pytest.raises(UserError, match="scales and shifts"):
        ready(Tent(), layered(nn.BatchNorm2d(4, affine=False)))


def test_tasks_without_classes_are_refused() -> None:
    with pytest.raises(UserError, match="classification task"):
        Tent().prepare(tiny(), Regression())


def test_one_input_has_no_batch_statistics() -> None:
    learner = ready(Tent())
    for ask in (learner.answer, learner.predict):
        with pytest.raises(UserError, match=r"needs at least 2 inputs per batch.*got 1"):
            ask(BATCHES[0][:1])
    with pytest.raises(UserError, match="batch=1: should be greater than or equal to 2"):
        ready(Tent(batch=1))


def test_no_part_of_a_batch_has_a_single_input() -> None:
    """Three inputs in batches of two are answered together: one by itself would have no batch statistics."""
    together, apart = (ready(BN(batch=size)).predict(BATCHES[0][:3]).scores for size in (3, 2))
    np.testing.assert_array_equal(together, apart)


def test_a_last_smaller_batch_is_a_batch_like_any_other() -> None:
    parts = [BATCHES[0], BATCHES[1][:2]]
    outputs, weights = adapted_by_hand(tent_loss, sgd(0.3), parts)
    must_agree(ready(Tent(lr=0.3)), parts, outputs, weights)


def test_many_inputs_at_once_are_taken_in_equal_parts() -> None:
    whole, parts = np.concatenate(TWO), [*BATCHES[0][:6], *BATCHES[0][6:], *BATCHES[1]]
    pieces = [np.stack(parts[k : k + 6]) for k in (0, 6, 12)]
    outputs, weights = adapted_by_hand(tent_loss, sgd(0.3), pieces)
    must_agree(
        ready(Tent(lr=0.3, batch=8)), [whole], [torch.cat(outputs)], weights
    )  # 18 inputs: 6, 6 and 6, not 8, 8, 2


def test_dropout_is_off_and_only_normalisation_is_trained() -> None:
    learner = ready(Tent(lr=0.3))
    assert not any(module.training for module in learner.model.modules())
    trained = [name for name, weight in learner.model.named_parameters() if weight.requires_grad]
    assert trained == NORM
    scores(learner, TWO)
    start, now = weights_of(tiny()), weights_of(learner.model)
    assert far(start, now, ["layer1.0.weight", "layer2.0.weight", "fc.weight", "fc.bias"]) == 0


def test_the_size_of_scales_can_be_followed() -> None:
    learner = ready(Tent(lr=0.3))
    before, first = learner.diagnostics(), [weight.detach().clone() for weight in learner.model.parameters()]
    learner.answer(BATCHES[0])
    moved = sum(((now - then) ** 2).sum().item() for now, then in zip(learner.model.parameters(), first, strict=True))
    sizes = {name: weight.abs().mean().item() for name, weight in weights_of(learner.model).items()}
    scales = {"scales of layer1": sizes["layer1.1.weight"], "scales of layer2": sizes["layer2.1.weight"]}
    assert learner.diagnostics() == pytest.approx({**scales, "distance from the start": moved**0.5})
    assert learner.diagnostics() != before


def test_resnet50_has_53_layers_of_batch_norm_with_53120_weights() -> None:
    with torch.device("meta"):
        model = ResNet(Bottleneck, (3, 4, 6, 3), 1000, 64)
    layers = norm_layers(model)
    assert (len(layers), sum(w.numel() for w in affine_parameters(layers.values()))) == (53, 53_120)


def test_one_forward_and_one_backward_pass_are_counted() -> None:
    first, second, head = 9 * 16 * 4 * 27, 9 * 4 * 4 * 36, 9 * 20  # multiply-accumulates for 9 images of 6 x 6
    for learner, backward in ((BN(), 0), (Tent(), second + head)):  # to the first norm; no convolution is trained
        model, meter = tiny(), MacCounter()
        meter.attach(model)
        ready(learner, model)
        learner.answer(BATCHES[0])
        assert (meter.forward, meter.backward) == (first + second + head, backward), type(learner).__name__


def test_the_methods_work_with_a_network_of_the_project() -> None:
    model = models.build("conv-1", (16, 16, 3), 3, Seed(0), width=4)
    learner = Tent()
    learner.prepare(model, Classification(("a", "b", "c")))
    x = np.random.default_rng(0).integers(0, 256, (8, 16, 16, 3), dtype=np.uint8)
    assert len(learner.answer(x)) == 8


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Tent(lr=-1), "Tent: lr=-1: should be greater than or equal to 0"),
        (Tent(lr=float("nan")), "Tent: lr=nan: should be"),
        (Tent(momentum=1), "Tent: momentum=1: should be less than 1"),
        (SLR(momentum=1), "SLR: momentum=1"),
        (SLR(kappa=2), "SLR: kappa=2: should be less than or equal to 1"),
        (SLR(delta=-1), "SLR: delta=-1"),
        (RPL(q=0), "RPL: q=0: should be greater than 0"),
        (CPL(eps=-1), "CPL: eps=-1"),
        (ETA(entropy_fraction=0), "ETA: entropy_fraction=0: should be greater than 0"),
        (ETA(similarity_margin=-1), "ETA: similarity_margin=-1: should be greater than 0"),
        (EATA(penalty_weight=-1), "EATA: penalty_weight=-1"),
        (CoTTA(n_augmentations=0), "CoTTA: n_augmentations=0: should be greater than or equal to 1"),
        (CoTTA(momentum=0), "CoTTA: momentum=0: should be greater than 0"),
        (CoTTA(teacher_momentum=2), "CoTTA: teacher_momentum=2"),
        (CoTTA(restore_probability=-1), "CoTTA: restore_probability=-1"),
        (PeriodicReset(options={"lr": "fast"}), "Tent: lr=fast: should be a valid number"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused_in_words(learner: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ready(learner)
