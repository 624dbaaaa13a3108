from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from driftline.errors import UserError
from driftline.learners.supervised.erm import ERMAll
from driftline.learners.supervised.mixup import Mixup
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing import check_learner
from driftline.training.fit import fit

from ..periods import PERIODS, network, trained, weights


def by_hand(*, per_example: bool = False, mix_loss: bool = True) -> Any:
    model, seed = network(), Seed(1).child("lesson", 0)
    rng = seed.child("mixing").numpy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # Adam would magnify rounding

    def update(x: Any, y: Any) -> None:
        w = torch.from_numpy(rng.beta(2.0, 2.0, (32, 1, 1, 1) if per_example else (1, 1, 1, 1))).float()
        other = torch.from_numpy(rng.permutation(32))
        outputs = model(w * x + (1 - w) * x[other])
        a, b = (cross_entropy(outputs, labels, reduction="none") for labels in (y, y[other]))
        optimizer.zero_grad()
        (w.flatten() * a + (1 - w.flatten()) * b if mix_loss else a).mean().backward()
        optimizer.step()

    x, y = (np.concatenate(parts) for parts in zip(*((p.x, p.y) for p in PERIODS), strict=True))
    fit(model, x, y, update, updates=4, batch=32, seed=seed)
    return model


def close(one: Any, other: Any) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in pairs)


def test_it_is_the_loop_one_would_write_by_hand() -> None:
    assert close(trained(Mixup(updates=4, optimizer="sgd", lr=0.1)).model, by_hand())


@pytest.mark.parametrize("wrong", [{"per_example": True}, {"mix_loss": False}])
def test_wrong_versions_would_be_noticed(wrong: dict[str, bool]) -> None:
    assert not close(trained(Mixup(updates=4, optimizer="sgd", lr=0.1)).model, by_hand(**wrong))


def test_loss_by_hand() -> None:
    class Given:
        def beta(self, a: float, b: float) -> float:
            assert a == b == 3.0
            return 0.25

        def permutation(self, n: int) -> np.ndarray:
            return np.arange(n)[::-1].copy()

    learner = Mixup(alpha=3.0)
    learner.model, learner._task, learner._rng = torch.nn.Identity(), Regression(), Given()
    x, y = torch.tensor([[4.0], [8.0]]), torch.tensor([0.0, 1.0])
    # inputs 7 and 5; losses 49 and 16 to their own targets, 36 and 25 to the other's
    assert learner.batch_loss(x, y).item() == pytest.approx((0.25 * (49 + 16) + 0.75 * (36 + 25)) / 2)


def test_exactly_so_many_updates() -> None:
    learner = trained(Mixup(updates=5, start="warm"))
    assert {int(state["step"]) for state in learner.optim.state.values()} == {20}


def test_it_sees_the_batches_of_erm_and_differs_from_it() -> None:
    assert weights(trained(Mixup(updates=4)).model) != weights(trained(ERMAll(updates=4)).model)


def test_a_senseless_alpha_is_refused() -> None:
    with pytest.raises(UserError, match="alpha=0"):
        trained(Mixup(alpha=0.0), [])


def test_a_warm_start_keeps_the_contract() -> None:
    check_learner(partial(Mixup, updates=3, start="warm"))
