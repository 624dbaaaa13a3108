"""MoCo + SML: features by momentum contrast, then river on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from driftline import jobs, registry, state
from driftline.errors import UserError
from driftline.models.networks import mlp
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.testing import check_learner, digest
from driftline.testing.fixtures import small_network
from driftline.training.encode import embed
from driftline.training.fit import descend, fit
from driftline.training.views import Views

pytest.importorskip("river")

from river.naive_bayes import GaussianNB
from river.tree import HoeffdingAdaptiveTreeClassifier

from driftline.learners.moco import MoCoStreaming
from driftline.training.contrast import Momentum

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


def taught(periods: list[Any], **settings: Any) -> MoCoStreaming:
    learner = prepared(**settings)
    for x, y in periods:
        learner.learn(x, y)
    return learner


def test_features_are_momentum_contrast_on_the_first_lesson() -> None:
    model = network()
    pairs = Momentum(model, Seed(1).child("projector"), momentum=0.999, size=1024, temperature=0.07)
    optimizer = torch.optim.Adam([*model.parameters(), *pairs.projector.parameters()], lr=1e-3)
    draws = Seed(1).child("views", 0).torch()

    def update(x: torch.Tensor, y: torch.Tensor) -> None:
        descend(optimizer, pairs.loss(*Views(area=0.2).pair(x, draws)))

    fit(model, *PERIODS[0], update, updates=4, batch=32, seed=Seed(1).child("lesson", 0))
    learner = taught(PERIODS)
    assert digest(dict(learner.model.state_dict())) == digest(dict(model.state_dict()))
    assert torch.equal(learner.contrast.queue, pairs.queue)
    assert learner.lessons == 3


@pytest.mark.parametrize(("lessons", "moved"), [(0, []), (1, [0]), (2, [0, 1]), (-1, [0, 1, 2])])
def test_how_many_lessons_train_the_features(lessons: int, moved: list[int]) -> None:
    learner, before, changes = prepared(feature_lessons=lessons), "", []
    for k, (x, y) in enumerate(PERIODS):
        before = digest(dict(learner.model.state_dict()))
        learner.learn(x, y)
        changes += [k] if digest(dict(learner.model.state_dict())) != before else []
    assert changes == moved


@pytest.mark.parametrize("head", ["hat", "nb"])
def test_the_classifier_is_river_on_features_of_length_one(head: Any) -> None:
    learner = taught(PERIODS, head=head, width=64)
    seed = Seed(1).child("classifier").value % 2**32
    theirs: Any = GaussianNB() if head == "nb" else HoeffdingAdaptiveTreeClassifier(seed=seed)
    for x, y in PERIODS:  # the features have not changed since the first lesson
        rows = normalize(embed(learner.model, x), dim=1).numpy()
        for row, label in zip(rows.tolist(), y.tolist(), strict=True):
            theirs.learn_one(dict(enumerate(row)), label)
    answers = learner.predict(PROBE)
    rows = normalize(embed(learner.model, PROBE), dim=1).numpy()
    for row, scores in zip(rows.tolist(), answers.scores, strict=True):
        said = theirs.predict_proba_one(dict(enumerate(row)))
        assert scores == pytest.approx([said.get(c, 0.0) for c in range(3)], abs=1e-9)


def test_many_features_become_few_in_the_same_way_each_time() -> None:
    learner = taught(PERIODS[:1])
    rows = learner.rows(PROBE)
    assert rows.shape == (9, 32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    assert digest(rows) == digest(learner.rows(PROBE))
    assert taught(PERIODS[:1], width=64).rows(PROBE).shape == (9, 64)


@pytest.mark.parametrize("head", ["hat", "arf", "nb"])
def test_interrupted_it_ends_the_same(head: Any, tmp_path: Any) -> None:
    whole, first, fresh = taught(PERIODS, head=head, feature_lessons=2), prepared(head=head, feature_lessons=2), None
    first.learn(*PERIODS[0])
    state.save(first.state(), tmp_path / "state")
    fresh = prepared(head=head, feature_lessons=2)
    fresh.restore(state.load(tmp_path / "state"))
    for x, y in PERIODS[1:]:
        fresh.learn(x, y)
    assert digest(fresh.state()) == digest(whole.state())
    assert digest(fresh.predict(PROBE).scores) == digest(whole.predict(PROBE).scores)


def test_features_that_move_in_every_lesson_keep_the_contract() -> None:
    check_learner(partial(MoCoStreaming, updates=2, feature_lessons=-1, head="nb"), models=[small_network])


@pytest.mark.parametrize("kind", ["hat", "arf", "nb"])
def test_presets_say_their_classifier(kind: str) -> None:
    assert registry.get("method", f"moco-{kind}")().head == kind
    schema = jobs.settings_model("method", f"moco-{kind}")
    assert schema is not None
    assert schema().model_dump()["head"] == kind


def test_it_learns_a_table() -> None:
    y = RNG.integers(0, 3, 300)
    x = RNG.normal(3 * y[:, None], 1, (300, 5))
    learner = prepared(mlp((5,), 3, seed=Seed(1), width=16), updates=50, head="nb")
    learner.learn(x[:200], y[:200])
    assert (learner.predict(x[200:]).prediction == y[200:]).mean() > 0.7


def test_numbers_are_refused() -> None:
    with pytest.raises(UserError, match="asks for a number"):
        MoCoStreaming().prepare(network(), Regression())
