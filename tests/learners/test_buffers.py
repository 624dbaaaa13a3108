from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from driftline.io import serialization
from driftline.learners.buffers import ReservoirBuffer, UniqueBuffer
from driftline.seeds import Seed
from driftline.testing import digest

ITEMS, CAPACITY, RUNS = 20, 5, 3000


def filled(n: int, seed: int = 0, capacity: int = CAPACITY) -> ReservoirBuffer:
    memory = ReservoirBuffer(capacity, Seed(seed))
    memory.add(np.arange(n, dtype=np.int16)[:, None], np.arange(n))
    return memory


class OneTooFew:
    """Chooses a place among those before, without that of the new sample."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def integers(self, low: int, high: Any) -> Any:
        return self.random.integers(low, np.maximum(high - 1, 1))


class AlwaysIn(OneTooFew):
    """The new sample always replaces a random one."""

    def integers(self, low: int, high: Any) -> Any:
        return self.random.integers(0, CAPACITY, len(high))


def unevenness(wrong: Any = None) -> float:
    """The p-value of 'every item is kept equally often', whatever its place in the stream."""
    kept = np.zeros(ITEMS)
    for seed in range(RUNS):
        memory = ReservoirBuffer(CAPACITY, Seed(seed))
        if wrong:
            memory.insert_rng = wrong(memory.insert_rng)
        for part in np.split(np.arange(ITEMS), [3, 4, 11]):
            memory.add(part, part)
        kept[memory.y] += 1
    share = CAPACITY / ITEMS
    statistic = ((kept - RUNS * share) ** 2).sum() / (RUNS * share * (1 - share)) * (ITEMS - 1) / ITEMS
    return float(chi2.sf(statistic, ITEMS - 1))


def test_every_sample_is_kept_equally_often() -> None:
    assert unevenness() > 0.01


@pytest.mark.parametrize("wrong", [OneTooFew, AlwaysIn])
def test_an_uneven_buffer_would_be_noticed(wrong: Any) -> None:
    assert unevenness(wrong) < 1e-6


def test_it_fills_up_and_keeps_pairs_together() -> None:
    memory = filled(3)
    assert memory.y.tolist() == [0, 1, 2]
    memory = filled(100)
    assert len(memory) == len(set(memory.y.tolist())) == CAPACITY
    assert memory.x[:, 0].tolist() == memory.y.tolist()
    assert memory.n_seen == 100


def test_how_samples_are_cut_into_calls_does_not_matter() -> None:
    whole, parts = filled(50), ReservoirBuffer(CAPACITY, Seed(0))
    for part in np.split(np.arange(50), [1, 4, 5, 30]):
        parts.add(part.astype(np.int16)[:, None], part)
        if len(parts):
            parts.draw(2)
    assert digest([whole.x, whole.y]) == digest([parts.x, parts.y])


def test_samples_stay_as_they_came() -> None:
    images = np.random.default_rng(0).integers(0, 256, (9, 4, 4, 1), dtype=np.uint8)
    memory = ReservoirBuffer(5, Seed(0))
    for part in (images[:6], images[6:]):
        memory.add(part, np.zeros(len(part), np.int8))
    assert memory.x.dtype == np.uint8
    assert memory.x.shape == (5, 4, 4, 1)
    assert memory.y.dtype == np.int8
    assert not np.may_share_memory(memory.x, images)
    texts = ReservoirBuffer(2, Seed(0))
    texts.add(["a", "b", "c"], np.array(["x", "y", "z"]))
    assert dict(zip("abc", "xyz", strict=True)).items() >= dict(zip(texts.x, texts.y, strict=True)).items()
    tensors = ReservoirBuffer(2, Seed(0))
    tensors.add(torch.zeros(3, 2, dtype=torch.float16), np.arange(3))
    assert tensors.x.dtype == torch.float16


def test_draws_are_without_replacement_and_reach_everything() -> None:
    memory = filled(CAPACITY)
    draws = [memory.draw(2)[1].tolist() for _ in range(200)]
    assert all(len(set(draw)) == 2 for draw in draws)
    counts = np.bincount(np.concatenate(draws))
    assert chi2.sf(((counts - 80) ** 2 / 80).sum(), CAPACITY - 1) > 0.01
    x, y = memory.draw(10)
    assert sorted(y.tolist()) == list(range(CAPACITY))
    assert x[:, 0].tolist() == y.tolist()


def test_without_room_nothing_is_kept() -> None:
    memory = filled(10, capacity=0)
    assert len(memory) == 0
    assert len(memory.draw(3)[1]) == 0


@pytest.mark.parametrize("cut", [0, 3, 40])
def test_interrupted_it_goes_on_as_if_never_interrupted(cut: int, tmp_path: Path) -> None:
    def go_on(memory: ReservoirBuffer) -> str:
        drawn = []
        for k in range(cut, cut + 30, 10):
            memory.add(np.arange(k, k + 10, dtype=np.int16)[:, None], np.arange(k, k + 10))
            drawn.append(memory.draw(2))
        return digest([drawn, memory.state()])

    memory = filled(cut) if cut else ReservoirBuffer(CAPACITY, Seed(0))
    if cut:
        memory.draw(3)
    serialization.save(memory.state(), tmp_path / "state")
    fresh = ReservoirBuffer(CAPACITY, Seed(0))
    fresh.restore(serialization.load(tmp_path / "state"))
    assert go_on(memory) == go_on(fresh)


def images(*values: int) -> np.ndarray:
    return np.array(values, np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 1), np.uint8)


@pytest.mark.parametrize("texts", [False, True])
def test_an_input_that_comes_again_keeps_its_place_and_takes_its_latest_answer(texts: bool) -> None:
    def given(*values: int) -> Any:
        return [f"question {value}" for value in values] if texts else images(*values)

    memory = UniqueBuffer()
    memory.add(given(5, 3, 5), np.array([0, 1, 2]))  # twice in one training round
    memory.add(given(3), np.array([7]))  # nothing new
    memory.add(given(9, 3), np.array([4, 8]))
    assert len(memory) == 3
    assert memory.y.tolist() == [2, 8, 4]
    assert (list(memory.x) == given(5, 3, 9)) if texts else np.array_equal(memory.x, given(5, 3, 9))


def test_a_buffer_neither_keeps_hold_of_nor_changes_what_it_is_given() -> None:
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
def test_a_buffer_survives_a_checkpoint(x: Any, tmp_path: Path) -> None:
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
