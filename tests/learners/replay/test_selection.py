"""Losses per sample, rankings and nearest samples, by hand."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from driftline.learners.replay.selection import (
    NearestInputs,
    per_sample_losses,
    rank_for_replay,
)
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.testing.fixtures import TASK, samples, small_network
from driftline.training.mac_counter import MacCounter
from driftline.types import Samples

BEFORE, AFTER = np.array([0.2, 1.0, 0.5, 0.1]), np.array([0.9, 1.3, 0.4, 0.6])  # section C of the specification


@pytest.mark.parametrize(
    ("ranking", "rows"), [("mir", [0, 3]), ("maxloss", [1, 0]), ("before-loss", [1, 2]), ("reverse", [2, 1])]
)
def test_the_worked_ranking(ranking: Any, rows: list[int]) -> None:
    assert rank_for_replay(ranking, BEFORE, AFTER, 2).tolist() == rows


def test_ties_go_by_row_and_few_are_all() -> None:
    assert rank_for_replay("mir", np.zeros(3), np.ones(3), 2).tolist() == [0, 1]
    assert rank_for_replay("maxloss", np.zeros(3), np.array([1.0, 3.0, 2.0]), 9).tolist() == [1, 2, 0]


def test_losses_are_those_of_one_sample_at_a_time_in_evaluation_mode() -> None:
    network, few = small_network((8, 8, 1), 3, Seed(0)), samples(0)
    network.train()  # dropout and batch statistics would show
    (found,) = per_sample_losses([network], TASK, few.x, few.y, batch=5)
    assert network.training
    alone = [per_sample_losses([network], TASK, few.x[i : i + 1], few.y[i : i + 1], 1)[0, 0] for i in range(len(few))]
    assert found == pytest.approx(alone, abs=1e-6)
    network.eval()
    with torch.no_grad():
        logits = network(torch.from_numpy(few.x).permute(0, 3, 1, 2).float() / 255)
    by_hand = -logits.log_softmax(1)[torch.arange(len(few)), torch.from_numpy(few.y)].numpy()
    assert found == pytest.approx(by_hand, abs=1e-6)


def test_losses_of_numbers() -> None:
    network = nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(2.0)
    task, x, y = Regression(center=1.0, scale=2.0), np.array([[1.0], [3.0]], np.float32), np.array([1.0, 5.0])
    (found,) = per_sample_losses([network], task, x, y, 2)
    assert found == pytest.approx([4.0, 16.0])  # targets 0 and 2, outputs 2 and 6


def test_losses_stop_where_the_compute_of_the_run_is_spent() -> None:
    network, meter = nn.Linear(1, 1, bias=False), MacCounter()
    meter.attach(network)
    twin = copy.deepcopy(network)
    twin.weight.data.add_(1.0)
    x, y = np.ones((10, 1), np.float32), np.zeros(10)
    meter.allowance = 9  # 2 samples in 2 networks are 4
    found = per_sample_losses([network, twin], Regression(), x, y, batch=2)
    assert found.shape == (2, 6)
    assert (found[1] > found[0]).all() or (found[1] < found[0]).all(), "each network has its own losses"
    assert meter.forward == 12
    assert per_sample_losses([network, twin], Regression(), x, y, 2).shape == (2, 0)


def test_neighbours_among_numbers_follow_a_buffer_that_grows() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [9.0, 9.0]], np.float32)
    likeness, memory = NearestInputs(None), Samples(x[:3], np.zeros(3))
    query = np.array([[8.0, 8.0], [0.2, 0.1]], np.float32)
    assert likeness.nearest(query, "online", memory, 1).tolist() == [0, 2]
    assert likeness.nearest(query, "online", Samples(x, np.zeros(4)), 1).tolist() == [0, 3]
    assert likeness.nearest(query, "online", Samples(x, np.zeros(4)), 9).tolist() == [0, 1, 2, 3]


def test_the_columns_of_a_table_are_compared_in_units_of_their_spread() -> None:
    upstream = np.array([[0.0, 0.0], [1.0, 1000.0]], np.float32)
    query, memory = np.array([[0.0, 0.0]], np.float32), Samples(np.array([[1.0, 0.0], [0.0, 100.0]]), np.zeros(2))
    assert NearestInputs(upstream).nearest(query, "m", memory, 1).tolist() == [1]
    assert NearestInputs(None).nearest(query, "m", memory, 1).tolist() == [0]


def test_texts_are_compared_by_their_rare_words() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["where is the cat ?", "where is the dog", "who is Ann ? Ann is Ann", "when is it ?"]
    likeness, query = NearestInputs(texts), ["where was the Ann who was there ?"]
    vectors = likeness.vectorize(texts)
    reference = TfidfVectorizer(sublinear_tf=True, token_pattern=r"[\w']+").fit(texts)
    by_hand = reference.transform(texts)
    assert (vectors @ vectors.T).toarray() == pytest.approx((by_hand @ by_hand.T).toarray())
    assert likeness.nearest(query, "m", Samples(texts, np.zeros(4)), 1).tolist() == [2]
    assert NearestInputs(None).nearest(["it ! when ?"], "m", Samples(texts, np.zeros(4)), 1).tolist() == [3]
