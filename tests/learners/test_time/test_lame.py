"""LAME: affinities and fixed points by hand, and answers that change where neighbors disagree with the network."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from driftline.errors import UserError
from driftline.learners.test_time.lame import LAME, adjusted, affinities
from driftline.tasks import Classification, Regression

P = torch.tensor([[0.9, 0.1], [0.45, 0.55], [0.2, 0.8]])
FEATURES = torch.tensor([[1.0, 0.0], [0.9, 0.3], [0.0, 1.0]])


def test_the_nearest_neighbors_have_affinity_one() -> None:
    assert affinities(FEATURES, "knn", 1).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert affinities(FEATURES, "knn", 5).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]  # there are only two


def test_answers_by_hand() -> None:
    knn = adjusted(P, affinities(FEATURES, "knn", 1))
    torch.testing.assert_close(knn[:, 0], torch.tensor([0.9249, 0.6568, 0.2549]), atol=1e-4, rtol=0)
    rbf = adjusted(P, affinities(FEATURES, "rbf", 2))
    torch.testing.assert_close(rbf[:, 0], torch.tensor([0.9697, 0.7178, 0.1164]), atol=1e-4, rtol=0)
    torch.testing.assert_close(adjusted(P, torch.zeros(3, 3)), P)


@pytest.mark.parametrize("kind", ["knn", "rbf"])
def test_the_result_is_a_minimum_of_the_energy(kind: str) -> None:
    """Found as well by searching a grid of probabilities, input by input, with the others held."""
    weights = affinities(FEATURES, kind, 2)
    weights = (weights + weights.T) / 2  # then a fixed point is where the energy is smallest for each input
    found = adjusted(P, weights)
    for row in range(3):
        share = torch.linspace(0.0005, 0.9995, 2000)
        candidates = torch.stack([share, 1 - share], dim=1)
        others = weights[row] @ found - weights[row, row] * found[row]
        own = others + weights[row, row] * found[row]
        energy = (candidates * (candidates.log() - P[row].log() - own)).sum(1)
        assert abs(share[energy.argmin()] - found[row, 0]) < 1e-3


def test_a_neighbor_changes_an_answer_and_a_single_input_keeps_its_own() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        network[1].weight.copy_(torch.tensor([[1.0, -1.1], [-1.0, 1.1]]))
    learner = LAME(n_neighbors=2)
    learner.prepare(network, Classification(("a", "b")))
    x = torch.tensor([[1.0, 0.0], [1.0, 0.2], [0.9, 0.9]]).numpy()
    assert learner.predict(x[2:]).prediction.tolist() == [1]
    assert learner.predict(x).prediction.tolist() == [0, 0, 0]
    with pytest.raises(UserError, match="lame needs a classification task"):
        LAME().prepare(network, Regression())


def test_a_single_input_has_no_neighbors_and_by_rbf_its_own_vote_alone() -> None:
    network = nn.Linear(2, 2)
    x, classes = torch.tensor([[0.3, -0.2]]), Classification(("a", "b"))
    with torch.no_grad():
        p = network(x).softmax(1)
    votes = p
    for _ in range(100):
        votes = (p.log() + votes).softmax(1)
    for kind, expected in (("knn", p), ("rbf", votes)):
        learner = LAME(affinity=kind)
        learner.prepare(network, classes)
        answers = learner.predict(x.numpy())
        torch.testing.assert_close(torch.tensor(answers.scores), expected, atol=1e-6, rtol=1e-5)
        assert answers.distance[0] == pytest.approx(-math.log(expected.max()), abs=1e-5)  # as in larger batches


def test_neighbors_are_those_by_features_in_evaluation_mode() -> None:
    """By the logits, the second input would be nearest to the first and not to the third."""
    last = nn.Linear(2, 2)
    with torch.no_grad():
        last.weight.copy_(torch.tensor([[2.0, 0.0], [-2.0, 0.1]]))
        last.bias.zero_()
    network = nn.Sequential(nn.BatchNorm1d(2, affine=False), nn.Dropout(0.5), last).train()
    learner = LAME(n_neighbors=1)
    learner.prepare(network, Classification(("a", "b")))
    x = torch.tensor([[1.0, 0.0], [0.4, 1.0], [-0.4, 1.0]])
    with torch.no_grad():
        logits = last(x / math.sqrt(1 + 1e-5))
    expected = adjusted(logits.softmax(1), torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 1, 0]]))
    torch.testing.assert_close(torch.tensor(learner.predict(x.numpy()).scores), expected, atol=1e-5, rtol=1e-4)
    assert affinities(logits, "knn", 1)[1].tolist() == [1, 0, 0]
    assert network[0].num_batches_tracked.item() == 0


def test_a_network_without_features_is_refused_before_the_stream() -> None:
    network = nn.Sequential(nn.Conv2d(3, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(UserError, match=r"Sequential has none: give it a method features\(x\)"):
        LAME().prepare(network, Classification(("a", "b")))
    network.features = lambda x: x.mean((2, 3))  # type: ignore[assignment]
    LAME().prepare(network, Classification(("a", "b")))
