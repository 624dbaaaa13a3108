"""MoCo + SML: features by momentum contrast, then river on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from driftline import registry
from driftline.errors import UserError
from driftline.io import serialization
from driftline.models.mlp import mlp
from driftline.seeds import Seed
from driftline.spec.settings import settings_model
from driftline.tasks import Classification, Regression
from driftline.testing import check_learner, digest
from driftline.testing.fixtures import small_network
from driftline.training.cached_features import extract_features
from driftline.training.contrastive_views import SimCLRAugmentation
from driftline.training.fit import fit, optimizer_step

pytest.importorskip("river")

from river.naive_bayes import GaussianNB
from river.tree import HoeffdingAdaptiveTreeClassifier

from driftline.learners.self_supervised.moco_streaming import MoCoStreaming
from driftline.training.contrastive import MoCo

TASK = Classification(("a", "b", "c"))
RNG = np.random.default_rng(0)
PERIODS = [(RNG.integers(0, 256, (20 + k, 8, 8, 1), dtype=np.uint8), RNG.integers(0, 3, 20 + k)) for k in range(3)]
PROBE = RNG.integers(0, 256, (9, 8, 8, 1), dtype=np.uint8)


def network() -> torch.nn.Module:
    return small_network((8, 8, 1), 3, Seed(5))


def prepared(model: Any = None, **settings: Any) -> MoCoStreaming:
    learner = MoCoStreaming(**{"updates": 4, **settings})
    learner.seed = Seed(1)
    learner.prepare(network() if model is None else model, TASK)
    return learner


def trained(periods: list[Any], **settings: Any) -> MoCoStreaming:
    learner = prepared(**settings)
    for x, y in periods:
        learner.learn(x, y)
    return learner


def test_features_are_momentum_contrast_on_the_first_training_round() -> None:
    model = network()
    pairs = MoCo(model, Seed(1).child("projector"), momentum=0.999, size=1024, temperature=0.07)
    optimizer = torch.optim.Adam([*model.parameters(), *pairs.projector.parameters()], lr=1e-3)
    draws = Seed(1).child("views", 0).torch()

    def update(x: torch.Tensor, y: torch.Tensor) -> None:
        optimizer_step(optimizer, pairs.loss(*SimCLRAugmentation(min_crop_area=0.2).two_views(x, draws)))

    fit(model, *PERIODS[0], update, updates=4, batch=32, seed=Seed(1).child("lesson", 0))
    learner = trained(PERIODS)
    assert digest(dict(learner.model.state_dict())) == digest(dict(model.state_dict()))
    assert torch.equal(learner.moco.queue, pairs.queue)
    assert learner.training_rounds == 3


@pytest.mark.parametrize(("training_rounds", "moved"), [(0, []), (1, [0]), (2, [0, 1]), (-1, [0, 1, 2])])
def test_how_many_training_rounds_train_the_features(training_rounds: int, moved: list[int]) -> None:
    learner, before, changes = prepared(n_feature_rounds=training_rounds), "", []
    for k, (x, y) in enumerate(PERIODS):
        before = digest(dict(learner.model.state_dict()))
        learner.learn(x, y)
        changes += [k] if digest(dict(learner.model.state_dict())) != before else []
    assert changes == moved


@pytest.mark.parametrize("classifier_kind", ["hat", "nb"])
def test_the_classifier_is_river_on_features_of_length_one(classifier_kind: Any) -> None:
    learner = trained(PERIODS, classifier_kind=classifier_kind, max_features=64)
    seed = Seed(1).child("classifier").value % 2**32
    theirs: Any = GaussianNB() if classifier_kind == "nb" else HoeffdingAdaptiveTreeClassifier(seed=seed)
    for x, y in PERIODS:  # the features have not changed since the first training
        rows = normalize(extract_features(learner.model, x), dim=1).numpy()
        for row, label in zip(rows.tolist(), y.tolist(), strict=True):
            theirs.learn_one(dict(enumerate(row)), label)
    answers = learner.predict(PROBE)
    rows = normalize(extract_features(learner.model, PROBE), dim=1).numpy()
    for row, scores in zip(rows.tolist(), answers.scores, strict=True):
        output = theirs.predict_proba_one(dict(enumerate(row)))
        assert scores == pytest.approx([output.get(c, 0.0) for c in range(3)], abs=1e-9)


def test_many_features_become_few_in_the_same_way_each_time() -> None:
    learner = trained(PERIODS[:1])
    rows = learner.rows(PROBE)
    assert rows.shape == (9, 32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert digest(rows) == digest(learner.rows(PROBE))
    assert trained(PERIODS[:1], max_features=64).rows(PROBE).shape == (9, 64)


@pytest.mark.parametrize("classifier_kind", ["hat", "arf", "nb"])
def test_interrupted_it_ends_the_same(classifier_kind: Any, tmp_path: Any) -> None:
    whole, first, fresh = (
        trained(PERIODS, classifier_kind=classifier_kind, n_feature_rounds=2),
        prepared(classifier_kind=classifier_kind, n_feature_rounds=2),
        None,
    )
    first.learn(*PERIODS[0])
    serialization.save(first.state(), tmp_path / "state")
    fresh = prepared(classifier_kind=classifier_kind, n_feature_rounds=2)
    fresh.restore(serialization.load(tmp_path / "state"))
    for x, y in PERIODS[1:]:
        fresh.learn(x, y)
    assert digest(fresh.state()) == digest(whole.state())
    assert digest(fresh.predict(PROBE).scores) == digest(whole.predict(PROBE).scores)


def test_features_that_move_in_every_training_round_keep_the_contract() -> None:
    check_learner(partial(MoCoStreaming, updates=2, n_feature_rounds=-1, classifier_kind="nb"), models=[small_network])


@pytest.mark.parametrize("kind", ["hat", "arf", "nb"])
def test_presets_say_their_classifier(kind: str) -> None:
    assert registry.get("method", f"moco-{kind}")().classifier_kind == kind
    schema = settings_model("method", f"moco-{kind}")
    assert schema is not None
    assert schema().model_dump()["classifier_kind"] == kind


def test_it_learns_a_table() -> None:
    y = RNG.integers(0, 3, 300)
    x = RNG.normal(3 * y[:, None], 1, (300, 5))
    learner = prepared(mlp((5,), 3, seed=Seed(1), width=16), updates=50, classifier_kind="nb")
    learner.learn(x[:200], y[:200])
    assert (learner.predict(x[200:]).prediction == y[200:]).mean() > 0.7


def test_numbers_are_refused() -> None:
    with pytest.raises(UserError, match="this task is a regression"):
        MoCoStreaming().prepare(network(), Regression())
