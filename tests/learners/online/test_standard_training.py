"""Standard training and fine-tuning: every number by hand."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from driftline import registry
from driftline.errors import UserError
from driftline.io import serialization
from driftline.learners.base import Learner
from driftline.learners.online.base import known_class_loss
from driftline.learners.online.fine_tune import FineTuneLastLayers
from driftline.learners.online.standard_training import StandardTraining
from driftline.models import build
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing import check_learner, digest
from driftline.testing.fixtures import small_network
from driftline.training.batches import shuffled_batches
from driftline.training.cached_features import extract_features
from driftline.training.freezing import last_layers
from driftline.types import Answers, Reveal, Samples, Step

from ..labelled_streams import FOUR, Scaled, metered, ready, small, some, streamed, unlabelled

UPSTREAM = some(20, (0, 1), seed=9)

MAML = partial(FineTuneLastLayers, pretraining="maml")


def sgd_by_hand(model: nn.Module, x: torch.Tensor, y: torch.Tensor, known: list[int], lr: float, **given: Any) -> None:
    """Two trainings' worth of SGD with momentum, written out; `given`: epochs, batch, trainings as lists of sizes."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    velocity = [torch.zeros_like(weight) for weight in weights]
    for training_round, n in enumerate(given["sizes"]):
        for epoch in range(given["epochs"]):
            order = Seed(1).child("lesson", training_round, epoch).child("order")
            for rows in shuffled_batches(n, given["batch"], order):
                places = torch.tensor([known.index(label) for label in y[rows].tolist()])
                loss = cross_entropy(model(x[rows])[:, known], places)
                slopes = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    for weight, v, slope in zip(weights, velocity, slopes, strict=True):
                        v.mul_(0.9).add_(slope + 1e-4 * weight)
                        weight.sub_(lr * v)


def after_labels(learner: Any, samples: Samples) -> Any:
    learner.learn(samples.x, samples.y)
    return learner


def test_two_training_rounds_are_sgd_with_kept_momentum_on_the_known_classes() -> None:
    samples, model = some(9, (0, 1, 2)), small()
    learner = after_labels(
        ready(StandardTraining(train_every=4, epochs=2, batch=3), copy.deepcopy(model), UPSTREAM), samples
    )
    with torch.no_grad():
        model[3].weight[2:], model[3].bias[2:] = 0, 0
    model.train()
    x, y = torch.from_numpy(samples.x), torch.from_numpy(samples.y)
    assert set(y[:4].tolist()) == {0, 1, 2}, "so that the same classes are known in both rounds"
    sgd_by_hand(model, x, y, [0, 1, 2], 0.01, sizes=[4, 8], epochs=2, batch=3)
    for (name, ours), theirs in zip(model.named_parameters(), learner.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, msg=name)
    assert learner.training_rounds == 2
    assert (learner.labels.n_labels, learner.labels.n_labels_at_training) == (9, 8)


@pytest.mark.parametrize("wrong", ["momentum forgotten", "last ones left out", "all classes"])
def test_the_computation_by_hand_can_tell(wrong: str) -> None:
    samples, model = some(9, (0, 1, 2)), small()
    learner = ready(StandardTraining(train_every=4, epochs=2, batch=3), copy.deepcopy(model), UPSTREAM)
    if wrong == "all classes":
        learner.loss = cross_entropy
    for k in range(9):
        learner.learn(samples.x[k : k + 1], samples.y[k : k + 1])
        if wrong == "momentum forgotten":
            learner.optim.state.clear()
    with torch.no_grad():
        model[3].weight[2:], model[3].bias[2:] = 0, 0
    model.train()
    sizes, x, y = [4, 8], torch.from_numpy(samples.x), torch.from_numpy(samples.y)
    sgd_by_hand(
        model, x, y, [0, 1, 2], 0.01, sizes=[3, 6] if wrong == "last ones left out" else sizes, epochs=2, batch=3
    )
    assert not torch.allclose(model[0].weight, learner.model[0].weight, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [StandardTraining, FineTuneLastLayers, partial(FineTuneLastLayers, n_layers=2)])
def test_classes_enter_with_their_first_training_round(make: Any) -> None:
    learner, novel = ready(make(train_every=6), upstream=UPSTREAM), some(5, (2,), seed=4)
    rows = learner.model[3].weight
    assert torch.equal(rows[2:], torch.zeros(2, 6))
    assert rows[:2].abs().min() > 0
    after_labels(learner, novel)
    assert torch.equal(rows[2:], torch.zeros(2, 6))
    assert set(learner.predict(some(200).x).prediction) <= {0, 1}
    after_labels(learner, some(1, (2,), seed=5))
    assert rows[2].abs().max() > 0
    assert torch.equal(rows[3], torch.zeros(6))
    answers = learner.predict(some(200).x)
    assert 3 not in answers.prediction
    assert (answers.scores[:, 3] == 0).all()


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("net", ["conv-2", "res-1", "yearbook-cnn"])
def test_what_is_frozen_stays_to_the_bit(net: str, n_layers: int) -> None:
    model = build(net, (16, 16, 3), 4, Seed(0), **({"width": 2} if net != "yearbook-cnn" else {"width": 4}))
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (13, 16, 16, 3), dtype=np.uint8), rng.integers(0, 4, 13)
    for module in model.modules():
        if hasattr(module, "fitted"):
            module.fitted.fill_(True)
    tuned = {id(weight) for layer in last_layers(model, n_layers) for weight in layer.parameters()}
    before = copy.deepcopy(dict(model.state_dict()))
    learner = after_labels(
        ready(FineTuneLastLayers(train_every=12, batch=4, n_layers=n_layers), model, Samples(x, y)), Samples(x, y)
    )
    assert learner.training_rounds == 1
    moved = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    trained = {name for name, weight in model.named_parameters() if id(weight) in tuned}
    statistics = {name.rsplit(".", 1)[0] for name in trained}
    assert trained <= moved
    assert all(name in trained or name.rsplit(".", 1)[0] in statistics for name in moved)


def test_layers_are_counted_as_layers() -> None:
    conv = build("conv-2", (16, 16, 3), 4, Seed(0), width=2)
    names = {module: name for name, module in conv.named_modules()}

    def last(n: int) -> list[str]:
        return [names[layer] for layer in last_layers(conv, n)]

    assert last(1) == ["layers.fc.2"]
    assert last(2) == ["layers.layer2.0", "layers.layer2.1", "layers.fc.2"]  # a convolution and its batch norm
    assert last(4)[0] == "layers.conv1.0"
    with pytest.raises(UserError, match="layers=5: this network has 4 layers"):
        last_layers(conv, 5)
    with pytest.raises(UserError, match="layers=0"):
        ready(FineTuneLastLayers(n_layers=0))


def test_all_layers_are_standard_training() -> None:
    samples = some(12)
    ends = [
        after_labels(ready(make, upstream=UPSTREAM), samples)
        for make in (FineTuneLastLayers(n_layers=2, train_every=5, lr=0.02), StandardTraining(train_every=5, lr=0.02))
    ]
    assert digest(dict(ends[0].model.state_dict())) == digest(dict(ends[1].model.state_dict()))


def test_the_last_layer_on_kept_features_is_the_last_layer_in_the_network() -> None:
    samples, model = some(11, (0, 1, 2)), small()
    learner = after_labels(
        ready(FineTuneLastLayers(train_every=5, epochs=3, batch=4), copy.deepcopy(model), UPSTREAM), samples
    )
    with torch.no_grad():
        model[3].weight[2:], model[3].bias[2:] = 0, 0
    model[0].requires_grad_(False)
    model[1].requires_grad_(False)
    x, y = torch.from_numpy(samples.x), torch.from_numpy(samples.y)
    assert set(y[:5].tolist()) == {0, 1, 2}
    sgd_by_hand(model.eval(), x, y, [0, 1, 2], 0.1, sizes=[5, 10], epochs=3, batch=4)
    torch.testing.assert_close(learner.model[3].weight, model[3].weight, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(learner.model[3].bias, model[3].bias, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(learner.buffer.x, extract_features(model, samples.x).numpy(), rtol=1e-6)


def eight() -> tuple[Samples, Any]:
    """Eight samples and a network of backbone 10 and head 1."""
    task = type(FOUR)(("a",))
    rng = np.random.default_rng(0)
    return Samples(rng.normal(size=(8, 10)).astype(np.float32), np.zeros(8, np.int64)), task


def backbone_10_head_1(*first: nn.Module) -> nn.Module:
    return nn.Sequential(*first, nn.Linear(10, 1), nn.Linear(1, 1)).eval()


def test_bills_of_the_worked_example() -> None:
    """Every 4 of 8 samples, 2 epochs over all: 24 passes; 88 to answer."""
    samples, task = eight()
    model, meter = metered(backbone_10_head_1(Scaled(10)))
    streamed(ready(StandardTraining(train_every=4, epochs=2), model, task=task), samples, task=task)
    assert (meter.forward, meter.backward, meter.saved) == (88 + 24 * 11, 24 * 22, 0)
    assert meter.forward + meter.backward == 880

    model, meter = metered(backbone_10_head_1())  # nobody asks for the gradient of the inputs
    streamed(ready(StandardTraining(train_every=4, epochs=2), model, task=task), samples, task=task)
    assert meter.forward + meter.backward == 880 - 24 * 10

    model, meter = metered(backbone_10_head_1())
    streamed(ready(FineTuneLastLayers(train_every=4, epochs=2), model, task=task), samples, (3,), task=task)
    assert meter.forward + meter.backward == 160
    assert meter.forward + meter.backward + meter.saved == 400


def test_frozen_layers_are_not_billed_for_going_back() -> None:
    samples, task = eight()
    net = nn.Sequential(nn.Linear(10, 3), Scaled(3), nn.Linear(3, 2), nn.Linear(2, 1)).eval()
    model, meter = metered(net)
    streamed(ready(FineTuneLastLayers(train_every=4, epochs=2, n_layers=3), model, task=task), samples, task=task)
    assert meter.forward == (8 + 24) * (30 + 6 + 2)
    assert meter.backward == 24 * 2 * (6 + 2)


@pytest.mark.parametrize("make", [StandardTraining, FineTuneLastLayers, partial(FineTuneLastLayers, n_layers=2), MAML])
@pytest.mark.parametrize("rule", [{}, {"delay": 3}, {"missing": 0.3}])
def test_answers_in_turn_are_those_given_one_by_one(make: Any, rule: dict[str, Any]) -> None:
    samples = some(60)
    fast, slow = (ready(make(train_every=7, batch=16), upstream=UPSTREAM) for _ in range(2))
    slow.answer_one_by_one = partial(Learner.answer_one_by_one, slow)
    quick, plain = streamed(fast, samples, (11, 30), **rule), streamed(slow, samples, (11, 30), **rule)
    assert fast.training_rounds > 4
    np.testing.assert_array_equal(quick.prediction, plain.prediction)
    np.testing.assert_allclose(quick.scores, plain.scores, atol=1e-4)


@pytest.mark.parametrize("rule", [{}, {"delay": 3}, {"missing": 0.3}])
def test_on_kept_features_they_are_the_same_to_the_last_digit(rule: dict[str, Any]) -> None:
    samples, answers = some(90), []
    for plainly in (False, True):
        learner = ready(FineTuneLastLayers(train_every=7), build("mlp", (5,), 4, Seed(0), width=32), UPSTREAM)
        learner.answer_one_by_one = (
            partial(Learner.answer_one_by_one, learner) if plainly else learner.answer_one_by_one
        )
        answers.append(streamed(learner, samples, (11, 50), **rule))
        assert len(learner.pending_features) <= 20, "what never gets a label is not kept for ever"
    assert digest(answers[0].distance) == digest(answers[1].distance)
    np.testing.assert_array_equal(answers[0].prediction, answers[1].prediction)


@pytest.mark.parametrize("make", [StandardTraining, FineTuneLastLayers, partial(FineTuneLastLayers, n_layers=2)])
def test_interrupted_between_training_rounds_it_ends_the_same(make: Any, tmp_path: Any) -> None:
    samples = some(40)

    def steps(learner: Any, reveal: RevealPolicy, start: int) -> list[Answers]:
        parts = [(0, 13), (13, 24), (24, 40)]
        return [
            learner.answer_one_by_one(reveal.feed(Step(k, str(k), samples[a:b], one_by_one=True)))
            for k, (a, b) in enumerate(parts)
            if k >= start
        ]

    def fresh() -> tuple[Any, RevealPolicy]:
        return ready(make(train_every=9), upstream=UPSTREAM), RevealPolicy(FOUR, Reveal.LABELS, Seed(2), delay=4)

    whole, rule = fresh()
    answers = steps(whole, rule, 0)
    first, rule = fresh()
    first.answer_one_by_one(rule.feed(Step(0, "0", samples[:13], one_by_one=True)))
    serialization.save({"learner": first.state(), "rule": rule.state()}, tmp_path / "state")
    second, rule = fresh()
    saved = serialization.load(tmp_path / "state")
    second.restore(saved["learner"])
    rule.restore(saved["rule"])
    again = steps(second, rule, 1)
    assert digest([a.scores for a in again]) == digest([a.scores for a in answers[1:]])
    assert digest(second.state()) == digest(whole.state())


@pytest.mark.parametrize("make", [StandardTraining, FineTuneLastLayers, partial(FineTuneLastLayers, n_layers=2), MAML])
def test_it_keeps_the_contract(make: Any) -> None:
    check_learner(partial(make, train_every=25, epochs=1, batch=13), models=[small_network])


def test_one_label_is_enough_for_a_training_round() -> None:
    learner = after_labels(ready(StandardTraining(train_every=1), upstream=UPSTREAM), some(2))
    assert learner.training_rounds == 2


def test_maml_starts_from_its_own_pretraining() -> None:
    maml = registry.get("method", "maml")()
    assert (maml.pretraining, maml.n_layers, maml.lr) == ("maml", 1, 0.1)


@pytest.mark.parametrize("make", [StandardTraining, FineTuneLastLayers])
def test_a_last_layer_that_was_never_trained_knows_no_class(make: Any) -> None:
    """Pretraining without labels leaves zeros; a class without data must not compete with them."""
    learner = ready(make(train_every=4), unlabelled(), UPSTREAM)
    assert not learner.known_classes.any()
    samples = some(4, (2, 3))
    after_labels(learner, samples)
    assert learner.known_classes.tolist() == [False, False, True, True]
    assert set(learner.predict(some(40).x).prediction.tolist()) <= {2, 3}


@pytest.mark.parametrize(
    ("schedule", "expected"), [("every", [3, 6, 9, 12, 15]), ("doubling", [3, 6, 12]), ("new-classes", [8])]
)
def test_rhythms(schedule: Any, expected: list[int]) -> None:
    """The model knows classes 0 and 1; the labels of the others are the sixth, seventh, eighth and later ones."""
    learner, at = ready(StandardTraining(train_every=3, epochs=1, schedule=schedule), upstream=UPSTREAM), []
    samples = some(15)
    for k, label in enumerate([0, 1, 0, 1, 0, 2, 3, 2, 2, 3, 0, 2, 3, 2, 3]):
        before = learner.training_rounds
        learner.learn(samples.x[k : k + 1], np.array([label]))
        at += [k + 1] if learner.training_rounds > before else []
    assert at == expected


def test_numbers_are_refused() -> None:
    with pytest.raises(UserError, match="needs a classification task"):
        ready(StandardTraining(), task=Regression())


def test_before_it_knows_any_class_a_sample_is_infinitely_far_from_all() -> None:
    answers = ready(StandardTraining(train_every=4)).predict(some(3, (0, 1)).x)
    assert answers.distance.tolist() == [np.inf] * 3
    assert answers.scores.tolist() == [[0.25] * 4] * 3
    known = ready(StandardTraining(train_every=4), upstream=UPSTREAM).predict(some(3, (0, 1)).x)
    assert np.isfinite(known.distance).all()


def test_the_loss_over_known_classes_is_the_same_to_the_bit_once_all_are_known() -> None:
    """Both values and gradients; a class with a vanishing output takes the place of an unknown one."""
    logits, y = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 0, 1, 2])
    found = []
    for given, known in ((logits[:, :3], np.ones(3, bool)), (logits, np.array([True, True, True, False]))):
        outputs = given.clone().requires_grad_()
        loss = known_class_loss(outputs, y, known)
        loss.backward()
        assert outputs.grad is not None
        found.append((loss.detach(), outputs.grad[:, :3]))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
