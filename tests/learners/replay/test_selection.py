"""Memories without doubles, losses per sample, rankings and epochs, by hand."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from driftline.io import serialization
from driftline.learners.replay.selection import (
    NearestInputs,
    UniqueBuffer,
    per_sample_losses,
    rank_for_replay,
    split_replay_size,
    train_epochs,
)
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression
from driftline.testing.fixtures import TASK, samples, small_network
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


def test_quotas() -> None:
    assert [split_replay_size(32, share) for share in (0, 0.25, 0.5, 1)] == [(0, 32), (8, 24), (16, 16), (32, 0)]


def images(*values: int) -> np.ndarray:
    return np.array(values, np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 1), np.uint8)


@pytest.mark.parametrize("texts", [False, True])
def test_an_input_that_comes_again_keeps_its_place_and_takes_its_latest_answer(texts: bool) -> None:
    def given(*values: int) -> Any:
        return [f"question {value}" for value in values] if texts else images(*values)

    memory = UniqueBuffer()
    memory.add(given(5, 3, 5), np.array([0, 1, 2]))  # twice in one lesson
    memory.add(given(3), np.array([7]))  # nothing new
    memory.add(given(9, 3), np.array([4, 8]))
    assert len(memory) == 3
    assert memory.y.tolist() == [2, 8, 4]
    assert (list(memory.x) == given(5, 3, 9)) if texts else np.array_equal(memory.x, given(5, 3, 9))


def test_a_memory_neither_keeps_hold_of_nor_changes_what_it_is_handed() -> None:
    memory, x, y = UniqueBuffer(), images(1, 2), np.array([0, 1])
    memory.add(x, y)
    saved = memory.state()
    memory.add(images(1), np.array([9]))
    assert y.tolist() == [0, 1]
    assert saved["y"].tolist() == [0, 1]
    x[:], y[:] = 0, 5
    assert memory.y.tolist() == [9, 1]
    assert np.array_equal(memory.x, images(1, 2))
    assert memory.x.dtype == np.uint8


@pytest.mark.parametrize("x", [images(1, 2, 3), ["a", "b", "c"]])
def test_a_memory_survives_a_checkpoint(x: Any, tmp_path: Path) -> None:
    memory, restored, empty = UniqueBuffer(), UniqueBuffer(), UniqueBuffer()
    memory.add(x, np.array(["one", "two", "three"], dtype=object))
    serialization.save({"full": memory.state(), "empty": empty.state()}, tmp_path / "state")
    saved = serialization.load(tmp_path / "state")
    restored.restore(saved["full"])
    empty.restore(saved["empty"])
    assert len(empty) == 0
    for each in (memory, restored, empty):
        each.add(x[1:2], np.array(["another"], dtype=object))
    assert memory.y.tolist() == restored.y.tolist() == ["one", "another", "three"]
    assert empty.y.tolist() == ["another"]


def test_longer_texts_are_not_cut_when_they_replace_shorter_ones() -> None:
    memory = UniqueBuffer()
    memory.add(["a"], np.array(["no"]))
    memory.add(["a"], np.array(["certainly"]))
    assert memory.y.tolist() == ["certainly"]


def test_losses_are_those_of_one_sample_at_a_time_in_evaluation_mode() -> None:
    network, few = small_network((8, 8, 1), 3, Seed(0)), samples(0)
    network.train()  # dropout and batch statistics would show
    found = per_sample_losses(network, TASK, few.x, few.y, batch=5)
    assert network.training
    alone = [per_sample_losses(network, TASK, few.x[i : i + 1], few.y[i : i + 1])[0] for i in range(len(few))]
    assert found == pytest.approx(alone, abs=1e-6)
    network.eval()
    with torch.no_grad():
        logits = network(torch.from_numpy(few.x).permute(0, 3, 1, 2).float() / 255)
    by_hand = -logits.log_softmax(1)[torch.arange(len(few)), torch.from_numpy(few.y)].numpy()
    assert found == pytest.approx(by_hand, abs=1e-6)


def test_losses_of_numbers() -> None:
    network = nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(2.0)
    found = per_sample_losses(
        network, Regression(center=1.0, scale=2.0), np.array([[1.0], [3.0]], np.float32), np.array([1.0, 5.0])
    )
    assert found == pytest.approx([4.0, 16.0])  # targets 0 and 2, outputs 2 and 6


def batches(n: int, **how: Any) -> list[list[int]]:
    """The rows of each update over n samples."""
    seen: list[list[int]] = []
    x, settings = (
        np.arange(n, dtype=np.float32)[:, None],
        {"epochs": 2, "batch": 4, "seed": Seed(0), "max_updates": 0, **how},
    )
    task = Classification(tuple(map(str, range(n))))
    train_epochs(nn.Linear(1, 1), task, x, np.arange(n), lambda x, y: seen.append(y.tolist()), **settings)
    return seen


def test_an_epoch_takes_every_sample_once_and_keeps_the_smaller_batch() -> None:
    seen = batches(10)
    assert [len(rows) for rows in seen] == [4, 4, 2, 4, 4, 2]
    one, two = [*chain(*seen[:3])], [*chain(*seen[3:])]
    assert sorted(one) == sorted(two) == list(range(10))
    assert one != two
    assert seen == batches(10)
    assert seen != batches(10, seed=Seed(1))
    assert [len(rows) for rows in batches(9)] == [4, 5, 4, 5]  # one alone has no batch statistics
    assert batches(10, max_updates=4) == seen[:4]


class SeveralAnswers(Regression):
    def sample_answers(self, y: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return random.choice([-1.0, 1.0], len(y)).astype(np.float32)


def test_each_epoch_takes_another_accepted_answer() -> None:
    taught: list[float] = []
    x, y = np.zeros((1, 1), np.float32), np.zeros(1)
    how: dict[str, Any] = {"epochs": 20, "batch": 4, "seed": Seed(0), "max_updates": 0}
    train_epochs(nn.Linear(1, 1), SeveralAnswers(), x, y, lambda x, y: taught.append(y[0].item()), **how)
    assert set(taught) == {-1.0, 1.0}


def test_neighbours_among_numbers_follow_a_memory_that_grows() -> None:
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
