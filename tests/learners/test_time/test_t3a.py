"""T3A: supports, prototypes and answers by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from driftline.errors import UserError
from driftline.learners.test_time.t3a import T3A
from driftline.tasks import Classification, Regression
from driftline.testing import check_learner
from driftline.training.mac_counter import MacCounter

FEATURES = np.array([[3.0, 1.0], [0.6, 0.5], [0.2, 2.0]], np.float32)
SCORES = torch.tensor([[3.1214, 1.1482], [0.6723, 0.5293], [0.5178, 2.0075]])


def example(n_supports: int = 2, **settings: int) -> T3A:
    network = nn.Sequential(nn.Flatten(), nn.Linear(2, 2))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
        network[1].bias.copy_(torch.tensor([0.0, 0.5]))
    learner = T3A(n_supports=n_supports, **settings)
    learner.prepare(network, Classification(("a", "b")))
    return learner


def test_the_worked_example() -> None:
    learner = example()
    torch.testing.assert_close(learner.supports.entropies, torch.tensor([0.1323, 0.4751]), atol=1e-4, rtol=0)
    answers = learner.answer(FEATURES)
    supports = learner.supports
    assert sorted(supports.entropies.tolist()) == pytest.approx([0.0605, 0.1323, 0.3446, 0.4751], abs=1e-4)
    assert supports.labels.tolist() == [0, 1, 0, 1]  # the second input's entropy is too large to stay
    torch.testing.assert_close(
        supports.prototypes(2), torch.tensor([[0.9871, 0.1602], [0.0498, 0.9988]]), atol=1e-4, rtol=0
    )
    np.testing.assert_allclose(answers.scores, SCORES.softmax(dim=1), atol=1e-4)


def test_wrong_prototypes_would_answer_otherwise() -> None:
    """Means of raw vectors, and a kept bias, are not what the example's digits allow."""
    supports = example().supports.joined(torch.tensor(FEATURES), torch.tensor([[6.0, 1.5], [1.2, 1.0], [0.4, 2.5]]), 2)
    raw = torch.stack([supports.vectors[supports.labels == c].mean(dim=0) for c in (0, 1)])
    assert float((nn.functional.normalize(raw, dim=1) - supports.prototypes(2)).abs().max()) > 0.02


def test_a_batch_joins_before_it_is_answered_and_asking_changes_nothing() -> None:
    learner, x = example(), np.array([[1.0, 1.6]], np.float32)
    alone = torch.tensor(x) @ learner.supports.prototypes(2).T
    asked = learner.predict(x).scores
    assert np.abs(asked - alone.softmax(dim=1).numpy()).max() > 0.01  # also with a batch of one
    assert len(learner.supports.labels) == 2
    np.testing.assert_array_equal(learner.answer(x).scores, asked)
    assert len(learner.supports.labels) == 3


def test_each_class_keeps_the_surest() -> None:
    learner, random = example(n_supports=3), np.random.default_rng(0)
    x = random.normal(size=(200, 2)).astype(np.float32)
    for part in (x[:50], x[50:120], x[120:]):
        learner.answer(part)
    logits = torch.tensor(x) @ torch.tensor([[2.0, 0], [0, 1]]).T + torch.tensor([0, 0.5])
    nats = torch.distributions.Categorical(logits=logits).entropy()
    for c in (0, 1):
        best = sorted([*nats[logits.argmax(dim=1) == c].tolist(), (0.1323, 0.4751)[c]])[:3]
        kept = learner.supports.entropies[learner.supports.labels == c]
        assert sorted(kept.tolist()) == pytest.approx(best, abs=1e-4)


def test_large_batches_are_split_and_join_in_order() -> None:
    whole, parts = example(batch=2), example(batch=2)
    together = whole.answer(FEATURES[[0, 2, 1, 1]]).scores
    apart = [parts.answer(FEATURES[rows]).scores for rows in ([0, 2], [1, 1])]
    np.testing.assert_array_equal(together, np.concatenate(apart))


def test_a_row_of_the_layer_stands_for_the_class_that_the_layer_answers_to_it() -> None:
    network = nn.Linear(2, 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[1.0, 0.0], [3.0, 0.0]]))
        network.bias.zero_()
    learner = T3A()
    learner.prepare(network, Classification(("a", "b")))
    assert learner.supports.labels.tolist() == [1, 1]
    assert learner.supports.prototypes(2).tolist() == [[0, 0], [1, 0]]


def test_the_network_is_in_evaluation_mode_and_the_comparison_with_prototypes_is_counted() -> None:
    torch.manual_seed(0)
    network, meter = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)), MacCounter()
    meter.attach(network)
    learner = T3A()
    learner.prepare(network.train(), Classification(("a", "b")))
    answers = learner.answer(FEATURES)
    assert meter.forward == 3 * (8 + 8 + 8)
    assert network[1].num_batches_tracked.item() == 0
    other = T3A()
    other.prepare(network.eval(), Classification(("a", "b")))
    np.testing.assert_array_equal(answers.scores, other.answer(FEATURES).scores)


class Reversed(nn.Module):
    """The layer that answers was written before the other one."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.head(self.body(x))
        return outputs


class OtherFeatures(nn.Linear):
    """Its own features are not the inputs of its last layer."""

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x], dim=1)


@pytest.mark.parametrize(
    "network", [Reversed(), OtherFeatures(2, 2), nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Tanh())]
)
def test_outputs_that_are_not_those_of_the_last_layer_are_refused(network: nn.Module) -> None:
    learner = T3A()
    learner.prepare(network.eval(), Classification(("a", "b")))
    with pytest.raises(UserError, match="this one's outputs are not its last's"):
        learner.answer(FEATURES)


def test_networks_and_tasks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="t3a needs a classification task"):
        T3A().prepare(nn.Linear(2, 1), Regression())
    with pytest.raises(UserError, match=r"ends in a linear layer with an output per class \(3\)"):
        T3A().prepare(nn.Linear(2, 2), Classification(("a", "b", "c")))
    with pytest.raises(UserError, match="n_supports=0"):
        T3A(n_supports=0).prepare(nn.Linear(2, 2), Classification(("a", "b")))


def test_it_keeps_the_contract_when_sets_are_full() -> None:
    check_learner(partial(T3A, n_supports=2))
