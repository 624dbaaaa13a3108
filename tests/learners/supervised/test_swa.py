from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from driftline.errors import UserError
from driftline.learners.supervised.erm import ERMAll
from driftline.learners.supervised.swa import SWA, recompute_batch_norm
from driftline.seeds import Seed
from driftline.testing import check_learner, digest
from driftline.testing.fixtures import SHAPE
from driftline.training.fit import fit

from ..periods import PERIODS, network, trained, weights

X, Y = (np.concatenate(parts) for parts in zip(*((p.x, p.y) for p in PERIODS), strict=True))


def path(updates: int = 8) -> list[dict[str, Any]]:
    """The weights of ERM on all periods after each update."""
    model, made = network(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def update(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
        made.append({name: value.detach().clone() for name, value in model.state_dict().items()})

    fit(model, X, Y, update, updates=updates, batch=32, seed=Seed(1).child("lesson", 0))
    return made


def parameters(model: Any) -> dict[str, Any]:
    return {name: value.detach() for name, value in model.named_parameters()}


def is_mean_of(model: Any, taken: list[dict[str, Any]]) -> bool:
    return all(
        torch.allclose(value, torch.stack([weights[name] for weights in taken]).mean(0), atol=1e-6)
        for name, value in parameters(model).items()
    )


@pytest.mark.parametrize(
    ("start_fraction", "average_every", "taken"),
    [(0.5, 1, [5, 6, 7, 8]), (0.5, 3, [5, 8]), (0.0, 3, [2, 5, 8]), (0.75, 10, [8]), (0.7, 1, [6, 7, 8])],
)
def test_it_answers_with_the_mean_of_weights_along_the_path(
    start_fraction: float, average_every: int, taken: list[int]
) -> None:
    made = path()
    learner = trained(SWA(updates=8, start_fraction=start_fraction, average_every=average_every))
    assert is_mean_of(learner.model, [made[update - 1] for update in taken])
    assert not is_mean_of(learner.model, [made[0], *(made[update - 1] for update in taken)])


def test_an_average_taken_once_at_the_end_would_be_noticed() -> None:
    erm = trained(ERMAll(updates=8)).model  # what Wild-Time's code amounts to
    assert is_mean_of(erm, path()[-1:])
    assert not is_mean_of(trained(SWA(updates=8, start_fraction=0.5, average_every=1)).model, path()[-1:])
    assert is_mean_of(trained(SWA(updates=8, start_fraction=0.5, average_every=9)).model, path()[-1:])


def first_layer(model: Any, x: Any = X) -> Any:
    with torch.no_grad():
        return model[0](torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255)


def test_batch_norm_is_measured_for_the_averaged_weights() -> None:
    learner = trained(SWA(updates=8, start_fraction=0.0, average_every=1, lr=0.05))
    out, norm = first_layer(learner.model), learner.model[1]  # 72 inputs: one batch holds all
    assert torch.allclose(norm.running_mean, out.mean((0, 2, 3)), atol=1e-5)
    assert torch.allclose(norm.running_var, out.transpose(0, 1).flatten(1).var(1), rtol=1e-4)
    stale = trained(ERMAll(updates=8, lr=0.05)).model[1]
    assert not torch.allclose(stale.running_mean, out.mean((0, 2, 3)), atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 17, 33])
def test_refreshing_takes_all_inputs_once_in_batches_of_like_size(n: int) -> None:
    model, lengths = network(), []
    model[0].register_forward_pre_hook(lambda _, args: lengths.append(len(args[0])))
    recompute_batch_norm(model, X[:n], Seed(0), batch=16)
    assert sum(lengths) == max(n, 2)
    assert max(lengths) - min(lengths) <= 1 < min(lengths)
    assert max(lengths) <= 16
    assert not model.training
    lengths.clear()
    expected = first_layer(model, X[:n]).mean((0, 2, 3))
    assert torch.allclose(model[1].running_mean, expected, atol=2e-3)


def test_refreshing_mixes_periods() -> None:
    """In order of time each batch would be flat, and the variance within batches nothing."""
    flat = np.repeat(np.array([0, 255], np.uint8), 32)[:, None, None, None] * np.ones((1, *SHAPE), np.uint8)
    model = network()
    recompute_batch_norm(model, flat, Seed(0), batch=16)
    out = first_layer(model, flat)[:, :, 2:-2, 2:-2]
    assert (model[1].running_var > 0.5 * out.transpose(0, 1).flatten(1).var(1)).all()


def test_a_fresh_start_averages_within_one_fit() -> None:
    whole = SWA(updates=8, start_fraction=0.5, average_every=1)
    whole.evaluated_at_end = True
    trained(whole).finish()
    assert weights(whole.model) == weights(trained(SWA(updates=8, start_fraction=0.5, average_every=1)).model)


def test_a_warm_start_goes_on_from_the_last_weights() -> None:
    settings = {"updates": 4, "start": "warm"}
    averaged, plain = trained(SWA(start_fraction=0.0, average_every=1, **settings)), trained(ERMAll(**settings))
    assert digest(averaged.last_weights) == weights(plain.model) != weights(averaged.model)


def test_exactly_so_many_updates() -> None:
    learner = trained(SWA(updates=5, start="warm"))
    assert {int(state["step"]) for state in learner.optim.state.values()} == {20}


def test_without_updates_nothing_changes() -> None:
    assert weights(trained(SWA(updates=0)).model) == weights(network())


@pytest.mark.parametrize("bad", [{"start_fraction": 1.0}, {"start_fraction": -0.1}, {"average_every": 0}])
def test_senseless_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"(start_fraction|average_every)="):
        trained(SWA(**bad), [])


def test_a_warm_start_keeps_the_contract() -> None:
    check_learner(partial(SWA, updates=4, start_fraction=0.0, average_every=1, start="warm"))
