"""OLTR: its formulas by hand, its memory, its rhythm and its bill."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.online.label_counter import LabelCounter
from driftline.learners.online.oltr import OLTR, CentroidMemory
from driftline.seeds import Seed
from driftline.testing import check_learner, digest
from driftline.testing.fixtures import small_network
from driftline.training.cached_features import extract_features

from ..labelled_streams import metered, ready, small, some, streamed, unlabelled

UPSTREAM = some(20, (0, 1), seed=9)


def recall_by_hand(centroid_memory: CentroidMemory, v: np.ndarray) -> np.ndarray:
    w = {name: value.detach().numpy().astype(float) for name, value in centroid_memory.state_dict().items()}
    held = np.flatnonzero(w["has_centroid"])
    a = (w["hallucinator.weight"] @ v + w["hallucinator.bias"])[held]
    o = np.exp(a) / np.exp(a).sum()
    e = np.tanh(w["selector.weight"] @ v + w["selector.bias"])
    g = min(np.linalg.norm(v - w["centroids"][i]) for i in held)
    m = (v + e * (o @ w["centroids"][held])) / g
    length = np.linalg.norm(m)
    cosines = np.array([m @ row / (length * np.linalg.norm(row)) for row in w["rows"]])
    result: np.ndarray = centroid_memory.scale * length**2 / (1 + length**2) * cosines
    return result


def filled_recall() -> CentroidMemory:
    centroid_memory = CentroidMemory(nn.Linear(3, 4), 16.0, Seed(0))
    features = torch.tensor([[1.0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 5]])
    centroid_memory.write(features, torch.tensor([0, 0, 1, 3]))
    return centroid_memory


def test_centroids_are_means_of_the_classes_there_are() -> None:
    centroid_memory = filled_recall()
    assert centroid_memory.centroids.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 0], [0, 0, 5]]
    assert centroid_memory.has_centroid.tolist() == [True, True, False, True]


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_features_in_half_precision_are_stored_and_read(precision: torch.dtype) -> None:
    memory = filled_recall()
    centroids, features = memory.centroids.clone(), torch.tensor([[1.0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 5]])
    expected = memory(features + 1)
    memory.write(features.to(precision), torch.tensor([0, 0, 1, 3]))
    assert torch.equal(memory.centroids, centroids)
    assert torch.equal(memory((features + 1).to(precision)), expected)


def test_logits_by_hand() -> None:
    centroid_memory, direct = filled_recall(), torch.tensor([[1.0, 0.5, -2.0], [0.1, 0.1, 0.1]])
    found = centroid_memory(direct).detach().numpy()
    for row, v in zip(found, direct.numpy(), strict=True):
        np.testing.assert_allclose(row, recall_by_hand(centroid_memory, v), rtol=1e-5, atol=1e-5)
    centroid_memory.has_centroid[2] = (
        True  # a wrong version: an empty place at the origin is the nearest one to the second sample
    )
    assert not np.allclose(centroid_memory(direct).detach().numpy()[1], found[1], rtol=1e-2)


def test_what_is_near_the_memory_is_answered_with_more_certainty() -> None:
    centroid_memory = filled_recall()
    with torch.no_grad():
        centroid_memory.selector.weight.zero_()
        centroid_memory.selector.bias.zero_()
    near, far = centroid_memory(torch.tensor([[2.0, 0.1, 0], [2.0, 9.0, 9.0]])).abs().max(1).values.tolist()
    assert near > far
    assert torch.isfinite(centroid_memory(torch.tensor([[2.0, 0, 0]]))).all(), "a sample that is a centroid"


def test_the_rhythm_of_the_paper() -> None:
    """4 epochs every 200 of the first 10,000 labels, then every 5,000: 65 trainings on 1,005,000 samples in all."""
    learner, at = OLTR(train_every=5000, warmup_labels=10_000, warmup_every=200), []
    learner.labels = LabelCounter(5000, "every")
    for learner.labels.n_labels in range(1, 89_922):
        if learner.labels_until_training() <= 0:
            at.append(learner.labels.n_labels)
            learner.labels.n_labels_at_training = learner.labels.n_labels
    assert at[:3] == [200, 400, 600]
    assert at[48:52] == [9800, 10_000, 15_000, 20_000]
    assert (len(at), at[-1], sum(at)) == (65, 85_000, 1_005_000)
    assert (89_921 + 4 * sum(at)) * 1.8186 == pytest.approx(7.47e6, rel=1e-3)


def test_other_rhythms_are_as_for_all() -> None:
    learner = ready(OLTR(train_every=3, schedule="doubling"), upstream=UPSTREAM)
    learner.labels.n_labels, learner.labels.n_labels_at_training = 5, 3
    assert learner.labels_until_training() == 1
    assert ready(OLTR(train_every=0), upstream=UPSTREAM).labels_until_training() > 1e9


def test_until_the_first_training_round_the_pretrained_network_answers() -> None:
    learner, x = ready(OLTR(warmup_every=10), upstream=UPSTREAM), some(9).x
    before = learner.predict(x)
    with torch.no_grad():
        logits = learner.model(torch.from_numpy(x)).numpy()
    np.testing.assert_array_equal(before.prediction, logits[:, :2].argmax(1))
    learner.learn(some(10).x, some(10).y)
    expected = np.stack(
        [recall_by_hand(learner.centroid_memory, v) for v in extract_features(learner.model, x).numpy()]
    )
    assert learner.known_classes.all()
    np.testing.assert_array_equal(learner.predict(x).prediction, expected.argmax(1))
    np.testing.assert_allclose(learner.predict(x).distance, -expected.max(1), rtol=1e-4)


def test_the_memory_is_what_the_network_saw_at_the_start_of_the_training_round() -> None:
    samples, learner = some(10, (0, 2)), ready(OLTR(warmup_every=10), upstream=UPSTREAM)
    start = extract_features(learner.model, samples.x)
    learner.learn(samples.x, samples.y)
    torch.testing.assert_close(learner.centroid_memory.centroids[2], start[samples.y == 2].mean(0))
    assert not torch.allclose(extract_features(learner.model, samples.x), start)
    assert learner.centroid_memory.has_centroid.tolist() == [True, False, True, False]


def test_two_learning_rates_and_an_idle_last_layer() -> None:
    learner, samples = ready(OLTR(warmup_every=8, epochs=1, batch=99), upstream=UPSTREAM), some(8, (0, 1, 2))
    head = digest(dict(learner.model[3].state_dict()))
    first, row = learner.model[0].weight.detach().clone(), learner.centroid_memory.rows.detach().clone()
    learner.learn(samples.x, samples.y)
    assert digest(dict(learner.model[3].state_dict())) == head
    velocity = learner.optim.state
    for weight, before, lr in ((learner.model[0].weight, first, 0.01), (learner.centroid_memory.rows, row, 0.1)):
        torch.testing.assert_close(weight.detach(), before - lr * velocity[weight]["momentum_buffer"])
    decay = 1e-4 * row[3]
    torch.testing.assert_close(
        velocity[learner.centroid_memory.rows]["momentum_buffer"][3], decay
    )  # class 3 is not known


def test_rows_of_known_classes_are_the_pretrained_ones() -> None:
    learner = ready(OLTR(), upstream=UPSTREAM)
    assert torch.equal(learner.centroid_memory.rows[:2], small()[3].weight[:2])
    assert not torch.equal(learner.centroid_memory.rows[2:], small()[3].weight[2:])
    assert learner.centroid_memory.rows[2:].abs().max() <= 6**-0.5


def test_after_pretraining_without_labels_rows_start_at_random() -> None:
    """A row of zeros has no direction, and the slope of its cosine has no bound."""
    model, samples = unlabelled(), some(40)
    learner = ready(OLTR(warmup_every=10, epochs=2, batch=10), model, UPSTREAM)
    assert (learner.centroid_memory.rows.norm(dim=1) > 0).all()
    learner.learn(samples.x, samples.y)
    assert learner.centroid_memory.rows.norm(dim=1).max() < 100


@pytest.mark.parametrize(("given", "message"), [({"warmup_every": 0}, "warmup_every=0"), ({"scale": 0}, "scale=0")])
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ready(OLTR(**given))


def test_the_bill() -> None:
    samples, (model, meter) = some(8), metered(small())
    streamed(ready(OLTR(warmup_every=4, epochs=2), model, UPSTREAM), samples)
    network, centroid_memory = 5 * 6 + 6 * 4, 6 * (4 * 4 + 6)
    answers = 8 * network + 4 * centroid_memory  # the first four by the network alone
    memory = (4 + 8) * network
    batches = 24 * (network + centroid_memory)
    assert meter.forward == answers + memory + batches
    # The gradient goes through the last layer's weights to the features, never into them.
    assert meter.backward == 24 * (5 * 6 + 6 * 4 + 2 * centroid_memory)


def test_answers_in_turn_are_those_given_one_by_one() -> None:
    samples = some(60)
    fast, slow = (ready(OLTR(warmup_every=7, batch=16), upstream=UPSTREAM) for _ in range(2))
    slow.answer_one_by_one = partial(Learner.answer_one_by_one, slow)
    quick, plain = (streamed(one, samples, (11,)) for one in (fast, slow))
    np.testing.assert_array_equal(quick.prediction, plain.prediction)
    np.testing.assert_allclose(quick.scores, plain.scores, atol=1e-4)


def test_classes_that_are_not_known_are_never_answered() -> None:
    learner: Any = ready(OLTR(warmup_every=6), upstream=UPSTREAM)
    learner.learn(some(6, (0, 2)).x, some(6, (0, 2)).y)
    assert 3 not in learner.predict(some(100).x).prediction


def test_it_keeps_the_contract() -> None:
    check_learner(partial(OLTR, warmup_every=25, epochs=1, batch=13), models=[small_network])
