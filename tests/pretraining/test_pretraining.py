"""Pretrainings: their losses and first steps by hand, and that they make features worth having."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from driftline import models, registry
from driftline.errors import UserError
from driftline.learners.supervised.base import SupervisedLearner
from driftline.pretraining.episodic import MetaBaselineTraining, PrototypicalTraining, halving_lr_factor
from driftline.pretraining.maml import MAMLTraining
from driftline.pretraining.moco import MoCoTraining
from driftline.seeds import Seed
from driftline.spec.settings import settings_model
from driftline.tasks import Classification
from driftline.testing import digest
from driftline.training.contrastive import MoCo
from driftline.training.contrastive_views import SimCLRAugmentation
from driftline.training.few_shot import Episode, episodes, nearest_mean_accuracy
from driftline.training.fit import fit, optimizer_step
from driftline.training.maml_inner_loop import InnerLoop
from driftline.types import Samples

from ..learners.labelled_streams import metered

SIX = Classification(tuple("abcdef"))
NAMES = ["supervised", "prototypes", "meta-baseline", "maml", "moco"]
SMALL: dict[str, Any] = {"way": 3, "shot": 2, "query": 3}


def hidden(seed: int = 0, classes: Any = range(6), each: int = 20) -> Samples:
    """Classes that differ in 2 of 8 numbers; the others are louder noise."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.array(classes), each)
    angle = y * (2 * np.pi / 12)
    x = rng.normal(size=(len(y), 8)) * ([0.3, 0.3] + [3.0] * 6)
    x[:, :2] += 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Samples(x.astype(np.float32), y)


def network() -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 5), nn.Linear(5, 6)).eval()


def trained(teacher: Any, model: nn.Module, samples: Samples) -> nn.Module:
    teacher.seed = Seed(1)
    teacher.prepare(model, SIX)
    teacher.train(samples.x, samples.y)
    return model


def test_prototypes_loss_on_a_tiny_episode() -> None:
    """Means (2, 0) and (0, 1); the query (1.5, .5) is at squared distances .5 and 2.5, (0, 0) at 4 and 1."""
    features = torch.tensor([[1.0, 0], [3, 0], [0, 1], [0, 1], [1.5, 0.5], [0, 0]])
    episode = Episode(np.array([4, 2]), np.array([[0, 1], [2, 3]]), np.array([[4], [5]]))
    expected = -(np.log(0.880797) + np.log(np.exp(-1) / (np.exp(-1) + np.exp(-4)))) / 2
    assert float(PrototypicalTraining().episode_loss(features, episode)) == pytest.approx(expected, abs=1e-6)
    plain = -(np.log(0.705584) + np.log(np.exp(-1) / (np.exp(-1) + np.exp(-2)))) / 2  # of distances, not squared
    assert float(PrototypicalTraining().episode_loss(features, episode)) != pytest.approx(plain, abs=1e-2)


def test_meta_baseline_loss_on_a_tiny_episode() -> None:
    features = torch.tensor([[1.0, 0], [3, 0], [0, 1], [0, 1], [1.5, 0.5], [0, 2]])
    episode = Episode(np.array([4, 2]), np.array([[0, 1], [2, 3]]), np.array([[4], [5]]))
    teacher: Any = MetaBaselineTraining()
    teacher.prepare(network(), SIX)
    teacher.scale.requires_grad_(False)
    a = 10 * np.array([1.5, 0.5]) / np.sqrt(2.5)
    expected = -(a[0] - np.log(np.exp(a).sum()) + 10 - np.log(np.exp(10) + 1)) / 2
    assert float(teacher.episode_loss(features, episode)) == pytest.approx(expected, abs=1e-5)


def test_the_learning_rate_halves_twice() -> None:
    assert [halving_lr_factor(k, 100) for k in (0, 39, 40, 79, 80, 99)] == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_prototypes_step_by_step() -> None:
    samples, ours = hidden(), network()
    found = trained(PrototypicalTraining(updates=5, lr=0.05, optimizer="sgd", **SMALL), network(), samples)
    x = torch.from_numpy(samples.x)
    drawn = episodes(samples, 3, 2, 3, 5, Seed(1).child("lesson", 0))
    for lr, e in zip([0.05, 0.05, 0.025, 0.025, 0.0125], drawn, strict=True):
        support, query = (ours[:3](x[rows]) for rows in (e.support, e.query))
        logits = -((query[:, :, None] - support.mean(1)) ** 2).sum(3)
        loss = cross_entropy(logits.flatten(0, 1), e.query_labels)
        for weight, slope in zip(
            ours[:3].parameters(), torch.autograd.grad(loss, list(ours[:3].parameters())), strict=True
        ):
            weight.data -= lr * slope
    torch.testing.assert_close(found[0].weight, ours[0].weight, rtol=1e-4, atol=1e-6)  # type: ignore[index]
    assert not torch.allclose(found[0].weight, network()[0].weight, atol=1e-3)  # type: ignore[index]


def test_maml_step_by_step() -> None:
    samples, ours = hidden(), network()
    teacher = MAMLTraining(updates=2, lr=0.1, optimizer="sgd", steps=3, inner_lr=0.2, **SMALL)
    found = trained(teacher, network(), samples)
    x = torch.from_numpy(samples.x)
    body = list(ours[:3].parameters())
    for lr, e in zip([0.1, 0.05], episodes(samples, 3, 2, 3, 2, Seed(1).child("lesson", 0)), strict=True):
        adapting = InnerLoop(ours, steps=3, lr=0.2)
        fast = adapting.adapt(x[e.support.ravel()], e.support_labels, 3, second_order=True)
        loss = cross_entropy(adapting.outputs(fast, x[e.query.ravel()]), e.query_labels)
        for weight, slope in zip(body, torch.autograd.grad(loss, body), strict=True):
            weight.data -= lr * slope
    torch.testing.assert_close(found[0].weight, ours[0].weight, rtol=1e-4, atol=1e-6)  # type: ignore[index]


def linear() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 5, bias=False), nn.Linear(5, 6, bias=False)).eval()


def test_what_maml_costs() -> None:
    """A linear network whose last layer has 3 rows in an episode: 8 x 5 and 5 x 3; 6 samples to adapt to, 9 queries."""
    model, meter = metered(linear())
    trained(MAMLTraining(updates=4, steps=0, **SMALL), model, hidden())
    assert meter.forward == 4 * 9 * (40 + 15)
    assert meter.backward == 4 * 9 * (40 + 2 * 15)  # nobody asks for the gradient of the inputs
    model, meter = metered(linear())
    trained(MAMLTraining(updates=4, steps=3, **SMALL), model, hidden())
    first_order = 4 * (3 * 6 + 9) * (40 + 2 * 15)
    assert meter.forward == 4 * (3 * 6 + 9) * (40 + 15)
    assert meter.backward > 1.5 * first_order


def test_moco_is_momentum_contrast() -> None:
    samples, ours = hidden(), network()
    found = trained(MoCoTraining(updates=4, batch=16), network(), samples)
    pairs = MoCo(ours, Seed(1).child("projector"), momentum=0.999, size=1024, temperature=0.07)
    optimizer = torch.optim.Adam([*ours.parameters(), *pairs.projector.parameters()], lr=1e-3)
    draws = Seed(1).child("views", 0).torch()

    def update(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer_step(optimizer, pairs.loss(*SimCLRAugmentation(min_crop_area=0.2).two_views(x, draws)))

    fit(ours, samples.x, samples.y, update, updates=4, batch=16, seed=Seed(1).child("lesson", 0))
    assert digest(dict(found[:3].state_dict())) == digest(dict(ours[:3].state_dict()))  # type: ignore[index]


def test_meta_baseline_goes_on_from_supervised_training() -> None:
    samples = hidden()
    plain = trained(SupervisedLearner(updates=10), network(), samples)
    none = trained(MetaBaselineTraining(updates=10, meta_updates=0, **SMALL), network(), samples)
    assert digest(dict(none.state_dict())) == digest(dict(plain.state_dict()))
    teacher = MetaBaselineTraining(updates=10, meta_updates=3, **SMALL)
    more = trained(teacher, network(), samples)
    assert not torch.equal(more[0].weight, plain[0].weight)  # type: ignore[index]
    assert torch.equal(more[3].weight, plain[3].weight), "the last layer stays"  # type: ignore[index]
    assert teacher.scale.item() != 10


@pytest.mark.parametrize("name", ["prototypes", "maml", "moco"])
def test_a_last_layer_without_meaning_is_zero(name: str) -> None:
    few = {} if name == "moco" else SMALL
    model = trained(registry.get("pretraining", name)(updates=2, **few), network(), hidden())
    assert not model[3].weight.any()  # type: ignore[index]
    assert not model[3].bias.any()  # type: ignore[index]


@pytest.mark.parametrize("name", ["supervised", "prototypes", "maml", "moco"])
def test_a_network_that_comes_trained_is_left_as_it_is(name: str) -> None:
    model = trained(registry.get("pretraining", name)(updates=0), network(), hidden())
    assert digest(dict(model.state_dict())) == digest(dict(network().state_dict()))


@pytest.mark.parametrize(("name", "updates"), [("prototypes", 120), ("meta-baseline", 120), ("maml", 120)])
def test_novel_classes_are_told_apart_better_than_before(name: str, updates: int) -> None:
    """Trained on the even places of a circle, asked about the odd ones."""
    samples, novel = hidden(classes=range(0, 12, 2)), hidden(1, range(1, 12, 2))
    y = samples.y // 2
    model = network()
    drawn = list(episodes(novel, 5, 5, 5, 60, Seed(7)))
    before = nearest_mean_accuracy(model, novel, drawn)
    trained(registry.get("pretraining", name)(updates=updates, lr=5e-3), model, Samples(samples.x, y))
    after = nearest_mean_accuracy(model, novel, drawn)
    assert after.mean - after.half_width > before.mean + before.half_width + 0.05


@pytest.mark.parametrize("name", NAMES)
def test_batch_norm_byte_images_and_fewer_classes_than_asked_for(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (40, 16, 16, 1), dtype=np.uint8), np.arange(40) % 2
    model = models.build("yearbook-cnn", (16, 16, 1), 6, Seed(0), width=4)
    before = copy.deepcopy(model.state_dict())
    few = {"meta_updates": 2} if name == "meta-baseline" else {}
    trained(registry.get("pretraining", name)(updates=2, **few), model, Samples(x, y))
    assert not model.training
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())
    assert not torch.equal(model.state_dict()["features.0.weight"], before["features.0.weight"])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_weights(name: str) -> None:
    few = {} if name in ("supervised", "moco") else {**SMALL, **({"meta_updates": 3} if "meta" in name else {})}
    ends = []
    for luck in (0, 1):
        with torch.random.fork_rng():
            torch.manual_seed(luck)
            ends.append(trained(registry.get("pretraining", name)(updates=3, **few), network(), hidden()))
    assert digest(dict(ends[0].state_dict())) == digest(dict(ends[1].state_dict()))


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_known_by_name(name: str) -> None:
    schema = settings_model("pretraining", name)
    assert schema is not None
    assert schema(updates=3).model_dump()["updates"] == 3


def test_too_small_classes_and_texts_are_refused_in_words() -> None:
    with pytest.raises(UserError, match=r"need 2 classes with 5 \+ 15 samples"):
        trained(PrototypicalTraining(), network(), hidden(each=10))
    with pytest.raises(UserError, match="these inputs are texts"):
        MoCoTraining().prepare(models.build("hashed-ngrams", (), 6, Seed(0)), SIX)


def test_views_and_queues_that_cannot_be_are_refused() -> None:
    for given in ({"temperature": 0.0}, {"queue_size": 0}, {"min_crop_area": 7.0}):
        with pytest.raises(UserError, match=r"should be (greater|less) than"):
            MoCoTraining(**given).prepare(models.build("conv-1", (8, 8, 1), 6, Seed(0)), SIX)
