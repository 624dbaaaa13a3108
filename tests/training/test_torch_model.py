"""Networks and estimators behind the one model protocol."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from driftline.errors import UserError
from driftline.models.sklearn_models import logistic_regression, naive_bayes
from driftline.seeds import Seed
from driftline.training.mac_counter import MacCounter
from driftline.training.model import as_model
from driftline.training.torch_model import TextGenerator, TorchModel, torch_model

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5), nn.ReLU(), nn.Linear(2, 2))


def test_predictions_are_raw_outputs_in_evaluation_mode_and_the_mode_stays() -> None:
    net = network().train()
    found = as_model(net).predict(X)
    assert net.training
    with torch.no_grad():
        np.testing.assert_array_equal(found, net.eval()(torch.from_numpy(X)).numpy())
    np.testing.assert_array_equal(torch_model(net).predict(X, batch=3), found)
    assert as_model(net).predict(X[:0]).shape == (0, 2)


def test_features_are_the_input_of_the_last_linear_layer() -> None:
    net = network()
    with torch.no_grad():
        expected = net[0](torch.from_numpy(X)).relu().numpy()
    np.testing.assert_array_equal(as_model(net).features(X), expected)
    assert as_model(naive_bayes((3,), 2, Seed(0))).features(X) is None
    assert as_model(nn.Conv1d(3, 2, 1)).features(X) is None


def test_a_clone_trains_independently_and_a_state_comes_back() -> None:
    net = network()
    model, before = as_model(net), as_model(net).predict(X)
    saved, clone = copy.deepcopy(model.state()), model.clone()
    nn.init.zeros_(clone[3].weight)
    np.testing.assert_array_equal(model.predict(X), before)
    nn.init.zeros_(net[3].weight)
    assert not np.array_equal(model.predict(X), before)
    model.restore(saved)
    np.testing.assert_array_equal(model.predict(X), before)


def test_copies_of_a_network_share_its_counter_unless_it_is_taken_away() -> None:
    net, counter = network(), MacCounter()
    assert as_model(net).mac_counter is None
    counter.attach(net)
    copied, silent = copy.deepcopy(net), copy.deepcopy(net)
    silent.mac_counter = None  # type: ignore[assignment]
    assert as_model(copied).mac_counter is counter
    for one in (net, copied, silent):
        as_model(one).predict(X)
    assert counter.forward == 2 * 4 * (3 * 2 + 2 * 2)


def test_what_kind_of_model_it_is() -> None:
    class Writes(nn.Module):
        def generate(self, x: list[str]) -> np.ndarray:
            return np.array(x, dtype=object)

    assert type(torch_model(network())) is TorchModel
    assert type(torch_model(Writes())) is TextGenerator
    assert as_model(Writes()).predict(["a"]).tolist() == ["a"]
    assert [as_model(one).is_network for one in (network(), logistic_regression((3,), 2, Seed(0)))] == [True, False]
    assert not as_model(logistic_regression((3,), 2, Seed(0))).supports_partial_fit
    with pytest.raises(UserError, match="a learner trains it"):
        as_model(network()).fit(X, np.zeros(4))


def test_an_estimator_that_is_cloned_is_fitted_by_itself() -> None:
    y = np.array([0, 1, 0, 1])
    model = naive_bayes((3,), 2, Seed(0))
    model.fit(X, y)
    before, clone = model.predict(X), as_model(model).clone()
    clone.fit(X, 1 - y)
    np.testing.assert_array_equal(model.predict(X), before)
    assert (clone.predict(X).argmax(1) != before.argmax(1)).any()
