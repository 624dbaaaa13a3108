from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from driftline.errors import UserError
from driftline.learners.supervised.erm import ERMAll
from driftline.learners.supervised.lisa import LISA, RowsByLabel
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing import check_learner
from driftline.testing.fixtures import SHAPE
from driftline.training.fit import fit
from driftline.types import Samples

from ..periods import PERIODS, network, trained, weights


def by_hand(*, any_label: bool = False, one_weight: bool = False, bytes_first: bool = False) -> Any:
    model, seed = network(), Seed(1).child("lesson", 0)
    rng = seed.child("mixing").numpy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # Adam would magnify rounding
    x, y = (np.concatenate(parts) for parts in zip(*((p.x, p.y) for p in PERIODS), strict=True))
    pool = torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255

    def update(x: Any, labels: Any) -> None:
        own = [np.flatnonzero(np.full(len(y), True) if any_label else y == label) for label in labels.numpy()]
        places = rng.integers([len(rows) for rows in own])
        other = pool[[rows[place] for rows, place in zip(own, places, strict=True)]]
        w = torch.from_numpy(rng.beta(2.0, 2.0, 32)).float()[:, None, None, None]
        w = w[:1] if one_weight else w
        mix = w * x + (1 - w) * other
        mix = (mix * 255).byte().float() / 255 if bytes_first else mix
        optimizer.zero_grad()
        cross_entropy(model(mix), labels).backward()
        optimizer.step()

    fit(model, x, y, update, updates=4, batch=32, seed=seed)
    return model


def close(one: Any, other: Any) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in pairs)


def test_it_is_the_loop_one_would_write_by_hand() -> None:
    assert close(trained(LISA(updates=4, optimizer="sgd", lr=0.1)).model, by_hand())


@pytest.mark.parametrize("wrong", [{"any_label": True}, {"one_weight": True}, {"bytes_first": True}])
def test_wrong_versions_would_be_noticed(wrong: dict[str, bool]) -> None:
    assert not close(trained(LISA(updates=4, optimizer="sgd", lr=0.1)).model, by_hand(**wrong))


def test_partners_have_the_label_and_are_drawn_uniformly() -> None:
    labels = np.array([2, 0, 2, 2, 0, 5])
    wanted = np.repeat([0, 2, 5], 6000)
    rows = RowsByLabel(labels).draw(wanted, np.random.default_rng(0))
    assert (labels[rows] == wanted).all()
    counts = np.bincount(rows, minlength=6)
    np.testing.assert_allclose(counts, [2000, 3000, 2000, 2000, 3000, 6000], rtol=0.06)


def test_partners_come_from_all_periods() -> None:
    met = []

    class Spy(LISA):
        def update(self, x: Any, y: Any) -> None:
            met.append(len(self._inputs))
            super().update(x, y)

    trained(Spy(updates=1))
    assert met == [18, 36, 54, 72]


def test_mixing_stays_within_the_class() -> None:
    """Each class is one flat picture: mixtures within it are that picture, and labels never meet."""
    y = np.arange(18) % 3
    x = np.broadcast_to((y * 100).astype(np.uint8)[:, None, None, None], (18, *SHAPE)).copy()
    seen = []

    class Spy(LISA):
        def batch_loss(self, x: Any, y: Any) -> Any:
            seen.append(torch.allclose(x, (y * 100 / 255).float()[:, None, None, None].expand_as(x)))
            return super().batch_loss(x, y)

    trained(Spy(updates=5), [Samples(x, y)])
    assert seen == [True] * 5


def test_exactly_so_many_updates() -> None:
    learner = trained(LISA(updates=5, start="warm"))
    assert {int(state["step"]) for state in learner.optim.state.values()} == {20}


def test_it_differs_from_erm() -> None:
    assert weights(trained(LISA(updates=4)).model) != weights(trained(ERMAll(updates=4)).model)


def test_it_refuses_what_it_cannot_do() -> None:
    with pytest.raises(UserError, match="no classes"):
        LISA().prepare(network(), Regression())
    with pytest.raises(UserError, match="alpha=-1"):
        trained(LISA(alpha=-1.0), [])


def test_a_warm_start_keeps_the_contract() -> None:
    check_learner(partial(LISA, updates=3, start="warm"))
