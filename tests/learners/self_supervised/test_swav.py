"""SwaV's first stage against itself written out by hand; what it shares with SimCLR is tested there."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from driftline.learners.self_supervised.swav import SwaV
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing import digest
from driftline.testing.fixtures import small_network
from driftline.training.contrastive import swav_loss
from driftline.training.contrastive_views import SimCLRAugmentation
from driftline.training.fit import fit

RNG = np.random.default_rng(0)
X, Y = RNG.integers(0, 256, (40, 8, 8, 1), dtype=np.uint8), RNG.integers(0, 3, 40)


def prepared(**settings: float) -> SwaV:
    learner = SwaV(**settings)  # type: ignore[arg-type]
    learner.seed = Seed(1)
    learner.prepare(small_network((8, 8, 1), 3, Seed(5)), Classification(("a", "b", "c")))
    return learner


def by_hand(updates: int, *, unit: bool = True) -> tuple[str, Tensor]:
    other = prepared()
    model, head = other.model, other.contrastive.head
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
    prototypes = head.get_parameter("prototypes")
    seed = Seed(1).child("lesson", 0)
    draws = seed.child("views").torch()

    def update(x: Tensor, y: Tensor) -> None:
        if unit:
            prototypes.data = normalize(prototypes.data, dim=1)
        a, b = SimCLRAugmentation().two_views(x, draws)
        loss = swav_loss(head(model[:-1](a)), head(model[:-1](b)), prototypes, temperature=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    fit(model, X, Y, update, updates=updates, batch=32, seed=seed.child("contrast"))
    return digest(dict(model.state_dict())), prototypes.detach()


def test_swav_by_hand() -> None:
    learner = prepared(updates=6, unlabeled_fraction=1.0)
    learner.learn(X, Y)
    expected, prototypes = by_hand(6)
    assert digest(dict(learner.model.state_dict())) == expected
    assert torch.equal(learner.contrastive.head.get_parameter("prototypes"), prototypes)
    assert expected != by_hand(6, unit=False)[0]


def test_prototypes_have_length_one_whenever_they_are_used() -> None:
    learner = prepared(updates=1, unlabeled_fraction=1.0)
    prototypes = learner.contrastive.head.get_parameter("prototypes")
    assert prototypes.shape == (32, 128)
    torch.testing.assert_close(prototypes.norm(dim=1), torch.ones(32))
    for _ in range(3):
        learner.learn(X, Y)
    features = torch.rand(4, 128, generator=torch.Generator().manual_seed(0))
    learner.contrastive.loss(features, features)
    torch.testing.assert_close(prototypes.norm(dim=1), torch.ones(32))
    assert not torch.equal(prototypes, prepared().contrastive.head.get_parameter("prototypes"))
