from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from driftline.errors import UserError
from driftline.learners.domain_generalization.coral_t import CoralT
from driftline.learners.domain_generalization.windows import GroupedBatch
from driftline.models.mlp import linear
from driftline.seeds import Seed
from driftline.testing import check_learner
from driftline.testing.fixtures import SHAPE
from driftline.training.mac_counter import MacCounter
from driftline.training.objectives import coral

from ..periods import PERIODS, fit_by_hand, network, trained, weights

by_hand = partial(fit_by_hand, partial(torch.optim.Adam, lr=1e-3))
Quick = partial(CoralT, updates=4, window=2, groups=2, batch=10)


def on_features(model: Any, batch: GroupedBatch, penalty_weight: float = 0.9) -> Tensor:
    features = model[:-1](batch.x)
    outputs = model[-1](features)
    return cross_entropy(outputs, batch.y) + penalty_weight * coral(features.split(5))


def on_logits(model: Any, batch: GroupedBatch) -> Tensor:  # Wild-Time's code
    outputs = model(batch.x)
    return cross_entropy(outputs, batch.y) + 0.9 * coral(outputs.split(5))


def test_it_is_the_loop_one_would_write_by_hand() -> None:
    assert weights(trained(Quick()).model) == weights(by_hand(on_features))


def test_aligning_logits_would_be_noticed() -> None:
    assert weights(trained(Quick()).model) != weights(by_hand(on_logits))


def test_without_strength_it_is_erm_on_the_same_batches() -> None:
    plain = by_hand(lambda model, batch: cross_entropy(model(batch.x), batch.y))
    assert weights(trained(Quick(penalty_weight=0.0)).model) == weights(plain)
    assert weights(trained(Quick()).model) != weights(plain)


def test_metering_does_not_change_it() -> None:
    metered = network()
    meter = MacCounter()
    meter.attach(metered)
    assert weights(trained(Quick(), model=metered).model) == weights(by_hand(on_features))
    assert meter.backward > 0


def test_strength_brings_the_features_of_windows_together() -> None:
    def distance(penalty_weight: float) -> float:
        model = trained(CoralT(updates=60, window=1, penalty_weight=penalty_weight, lr=1e-2)).model
        with torch.no_grad():
            groups = [model[:-1](torch.from_numpy(p.x).permute(0, 3, 1, 2) / 255) for p in PERIODS]
        return coral(groups).item() / torch.cat(groups).var().item()

    assert distance(100.0) < 0.7 * distance(0.0)


def test_on_one_linear_layer_it_is_erm() -> None:
    models = [linear(SHAPE, 3, Seed(5)) for _ in range(2)]
    strong, none = (trained(Quick(penalty_weight=s), model=m).model for s, m in zip((9.0, 0.0), models, strict=True))
    assert weights(strong) == weights(none)


def test_a_network_without_features_is_refused_before_it_runs() -> None:
    with pytest.raises(UserError, match="last linear layer, and Sequential has none"):
        trained(Quick(), [], torch.nn.Sequential(torch.nn.Conv2d(1, 3, 8), torch.nn.Flatten()))


@pytest.mark.parametrize("bad", [{"groups": 0}, {"window": 0}])
def test_senseless_settings_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(UserError, match="should be greater than or equal to 1"):
        trained(CoralT(**bad), [])


def test_defaults_are_wild_times() -> None:
    assert (CoralT().penalty_weight, CoralT().groups, CoralT().window) == (0.9, 10, 5)


def test_a_warm_start_keeps_the_contract() -> None:
    check_learner(partial(Quick, start="warm"))


def test_exactly_so_many_updates() -> None:
    learner = trained(Quick(start="warm"))
    assert {int(state["step"]) for state in learner.optim.state.values()} == {4 * 4}


def test_waiting_trains_once_at_the_end() -> None:
    learner = Quick()
    learner.evaluated_at_end = True
    assert weights(trained(learner).model) == weights(network())
    learner.finish()
    assert weights(learner.model) == weights(by_hand(on_features))
