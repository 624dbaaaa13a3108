"""Methods on frozen features: blocks against one by one, labels that are late or missing, crashes, and the bill."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline import models, registry
from driftline.errors import UserError
from driftline.io import serialization
from driftline.learners.prototypes.exemplar_tuning import ExemplarTuning
from driftline.learners.prototypes.ncm import NearestClassMean
from driftline.learners.prototypes.weight_imprinting import WeightImprinting
from driftline.reveal import LabelFeed, RevealedLabels
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing import check_learner, digest
from driftline.training.features import unit_length
from driftline.training.mac_counter import MacCounter

from ..one_by_one import WIDTH, labels, must_equal, prepared, stream, walk

TRAINING: dict[str, Any] = {"train_every": 9, "epochs": 2, "batch": 4, "lr": 0.05}
METHODS = {
    "ncm": NearestClassMean,
    "linear": partial(ExemplarTuning, **TRAINING),
    "cosine": partial(ExemplarTuning, similarity="cosine", **TRAINING),
    "euclidean": partial(ExemplarTuning, similarity="euclidean", **TRAINING),
    "imprinting": partial(WeightImprinting, imprint_only_labels=20, **TRAINING),
}


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=12, deadline=None)
@given(
    model=st.sampled_from(["linear", "mlp"]),
    n=st.integers(1, 70),
    classes=st.integers(2, 40),
    block=st.sampled_from([1, 7, 64]),
    delay=st.sampled_from([0, 0, 1, 40]),
    missing=st.sampled_from([0.0, 0.0, 0.5]),
    seed=st.integers(0, 99),
)
def test_blocks_equal_one_by_one_to_the_last_digit(
    name: str, model: str, n: int, classes: int, block: int, delay: int, missing: float, seed: int
) -> None:
    steps = stream(n, classes, block, seed)
    routes = []
    for plainly in (False, True):
        learner = prepared(METHODS[name](), classes, model)
        routes.append((walk(learner, steps, labels(classes, delay=delay, missing=missing), plainly), learner))
    must_equal(routes[0][0], routes[1][0])
    for part in ("sums", "counts", "training_rounds"):
        np.testing.assert_array_equal(getattr(routes[0][1], part), getattr(routes[1][1], part))
    assert routes[0][1].labels.state() == routes[1][1].labels.state()
    if name != "ncm":
        assert digest(serialization.to_tree(routes[0][1].head)) == digest(serialization.to_tree(routes[1][1].head))


@pytest.mark.parametrize("width", [2, 3, 8, 11])
@pytest.mark.parametrize("name", ["ncm", "fine-tune"])
def test_narrow_layers_are_exact_too(name: str, width: int) -> None:
    """The digits of a linear layer with 2 to 11 outputs depend on a sample's place among those computed with it."""
    steps, routes = stream(70, 5, 64, width=33), []
    for plainly in (False, True):
        network = torch.nn.Sequential(torch.nn.Linear(33, width), torch.nn.ReLU(), torch.nn.Linear(width, 5))
        network.load_state_dict(routes[0][1] if routes else network.state_dict())
        start = copy.deepcopy(network.state_dict())
        learner = prepared(registry.get("method", name)(train_every=0), 5, network=network)
        learner.known_classes[:] = True
        routes.append((walk(learner, steps, labels(5), plainly), start))
    must_equal(routes[0][0], routes[1][0])


@pytest.mark.parametrize("name", METHODS)
def test_how_a_stream_is_cut_does_not_matter(name: str) -> None:
    cut = [walk(prepared(METHODS[name](), 30, "mlp"), stream(90, 30, block), labels(30)) for block in (1, 7, 64)]
    for other in cut[1:]:
        must_equal(cut[0], other)


@pytest.mark.parametrize("name", METHODS)
def test_blocks_equal_one_by_one_with_many_classes(name: str) -> None:
    """Wrong if a row were compared with a class as it became after its answer, or as it was at the block's start."""
    batches = {} if name == "ncm" else {"train_every": 185}
    steps = stream(293, 150, 288, width=40)
    fast, plain = (prepared(METHODS[name](**batches), 150, width=40) for _ in range(2))
    must_equal(walk(fast, steps, labels(150)), walk(plain, steps, labels(150), plainly=True))
    np.testing.assert_array_equal(fast.sums, plain.sums)


def test_with_nothing_to_train_nothing_is_kept() -> None:
    learner = prepared(ExemplarTuning(train_every=0), 4)
    walk(learner, stream(30, 4, 10), labels(4))
    assert (len(learner.buffer), learner.labels.n_labels, learner.training_rounds) == (0, 30, 0)


def test_labels_of_any_whole_type_can_be_trained_on() -> None:
    learner = prepared(ExemplarTuning(**TRAINING), 3)
    learner.learn(stream(9, 3, 9)[0].samples.x, np.arange(9, dtype=np.int32) % 3)
    assert learner.training_rounds == 1


def test_ordinary_batches_of_a_network_would_not_do() -> None:
    """Why the network is always asked about equally many: otherwise a sample's features depend on its company."""
    network = models.build("mlp", (WIDTH,), 3, Seed(2))
    x = torch.from_numpy(stream(64, 3, 64)[0].samples.x)
    with torch.no_grad():
        assert not torch.equal(torch.cat([network[:-1](row[None]) for row in x]), network[:-1](x))
    learner = prepared(NearestClassMean(), 3, network=network)
    alone = np.concatenate([learner.features(x[k : k + 1]) for k in range(64)])
    np.testing.assert_array_equal(alone, learner.features(x))


@pytest.mark.parametrize("name", METHODS)
def test_a_run_killed_between_any_two_blocks_goes_on_alike(name: str, tmp_path: Path) -> None:
    steps = stream(80, 12, 7)
    whole = walk(prepared(METHODS[name](), 12), steps, labels(12, delay=10, missing=0.3))
    first, reveal = prepared(METHODS[name](), 12), labels(12, delay=10, missing=0.3)
    walk(first, steps[:5], reveal)
    serialization.save([first.state(), serialization.to_tree(reveal.state())], tmp_path / "state")
    saved = serialization.load(tmp_path / "state")
    second, again = prepared(METHODS[name](), 12), labels(12, delay=10, missing=0.3)
    second.restore(saved[0])
    again.restore(saved[1])
    rest = walk(second, steps[5:], again)
    np.testing.assert_array_equal(rest.scores, whole.scores[35:])
    np.testing.assert_array_equal(rest.distance, whole.distance[35:])


def test_the_contract_with_cosine_similarity() -> None:
    """Others: tests/test_contracts.py and tests/learners/test_one_by_one_contract.py."""
    check_learner(METHODS["cosine"])


def test_features_are_kept_only_until_a_later_label_is_told() -> None:
    learner = prepared(NearestClassMean(), 4)
    walk(learner, stream(30, 4, 10), labels(4, delay=12))
    assert (len(learner.pending_features), learner.first_pending, learner.labels.n_labels) == (12, 18, 18)
    walk(learner, stream(10, 4, 10), labels(4))  # labels without delay: those before never come
    assert (
        len(learner.pending_features) == 22
    )  # labels 0 to 9 are revealed again: out of order, and nothing is forgotten


def test_labels_out_of_order_are_still_those_of_their_samples() -> None:
    """Labels of samples 0 to 3 are revealed as 3, 1: the features of 1 are no longer kept, and are made again."""
    x, y = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH), np.array([0, 1, 2, 3])
    shown = {2: None, 3: RevealedLabels(x[[3, 1]], y[[3, 1]], np.array([3, 1]))}
    learner = prepared(NearestClassMean(), 4)
    asked = iter(range(4))
    learner.answer_one_by_one(LabelFeed(x, 0, lambda prediction: shown.get(next(asked))))
    np.testing.assert_array_equal(learner.means(slice(None))[[1, 3]], x[[1, 3]])
    assert learner.counts.tolist() == [0, 1, 0, 1]


def test_before_the_first_label_everything_is_infinitely_far() -> None:
    answers = prepared(NearestClassMean(), 4).predict(np.zeros((2, WIDTH), np.float32))
    assert answers.prediction.tolist() == [0, 0]
    assert answers.scores.tolist() == [[0.25] * 4] * 2
    assert np.isposinf(answers.distance).all()


def bill(learner: Any, n: int = 40, block: int = 16) -> MacCounter:
    """Of an mlp 6-5-4-3 on a stream: 30 + 20 multiply-accumulates before the last layer, 12 in it."""
    network = models.build("mlp", (WIDTH,), 3, Seed(2))
    network[1], network[3], network[5] = torch.nn.Linear(6, 5), torch.nn.Linear(5, 4), torch.nn.Linear(4, 3)
    meter = MacCounter()
    meter.attach(network)
    walk(prepared(learner, 3, network=network), stream(n, 3, block), labels(3))
    return meter


def test_answering_is_charged_for_real_samples_only() -> None:
    meter = bill(NearestClassMean())
    assert (meter.forward, meter.backward, meter.saved) == (40 * 62, 0, 0)


def test_training_rounds_are_charged_for_the_last_layer_and_record_what_they_saved() -> None:
    meter = bill(ExemplarTuning(train_every=16, epochs=3, batch=8))
    passes = 3 * (16 + 32)
    assert meter.forward == 40 * 62 + passes * 12
    assert meter.backward == 2 * passes * 12
    assert meter.saved == passes * 50


def test_evaluations_are_not_the_methods_own_cost() -> None:
    network = models.build("linear", (WIDTH,), 3, Seed(2))
    meter = MacCounter()
    meter.attach(network)
    learner = prepared(NearestClassMean(), 3, network=network)
    meter.probing = True
    learner.predict(np.zeros((5, WIDTH), np.float32))
    assert (meter.forward, meter.probe_macs) == (0, 5 * 3 * WIDTH)


def test_refusals_are_sentences() -> None:
    with pytest.raises(UserError, match="train_every=5: should be 0"):
        prepared(NearestClassMean(train_every=5), 3)
    with pytest.raises(UserError, match="needs a classification task"):
        NearestClassMean().prepare(models.build("linear", (WIDTH,), 1, Seed(0)), Regression())


def test_unit_rows() -> None:
    np.testing.assert_array_equal(unit_length(np.float32([[3, 4], [0, 0]])), np.float32([[0.6, 0.8], [0, 0]]))


class EverySecond(NearestClassMean):
    """Learns from every second label only."""

    def update_class(self, x: np.ndarray, label: int) -> None:
        if self.labels.n_labels % 2:
            super().update_class(x, label)


def test_what_is_derived_from_nearest_class_mean_learns_in_its_own_way() -> None:
    steps, learners = stream(60, 4, 20), [prepared(EverySecond(), 4), prepared(EverySecond(), 4)]
    fast, plain = (walk(one, steps, labels(4), plainly) for one, plainly in zip(learners, (False, True), strict=True))
    must_equal(fast, plain)
    assert [int(one.counts.sum()) for one in learners] == [30, 30]


def test_a_mean_is_the_sum_by_the_count_rounded_once() -> None:
    """0.1, 0.2 and 0.4 as float32: their sum in float64 by 3."""
    learner, rows = prepared(NearestClassMean(), 3, width=1), np.float32([[0.1], [0.2], [0.4]])
    for row in rows:
        learner.update_class(row[None], 1)
    assert (learner.counts.tolist(), learner.sums[1, 0]) == ([0, 3, 0], rows.astype(float).sum())
    assert learner.means(slice(None)).tolist() == [[0], [np.float32(rows.astype(float).sum() / 3)], [0]]
