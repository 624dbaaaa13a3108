"""Few-shot episodes: how they are drawn, and what is measured on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.testing import digest
from driftline.training.few_shot import (
    Episode,
    EpisodeAccuracies,
    cosine_logits,
    episodes,
    fine_tuned_accuracy,
    nearest_mean_accuracy,
    squared_distance_logits,
)
from driftline.types import Samples


def blobs(classes: int, accuracies: int, spread: float = 0.1) -> Samples:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), accuracies)
    centres = rng.normal(size=(classes, 4))
    return Samples((centres[y] + spread * rng.normal(size=(len(y), 4))).astype(np.float32), y)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 5), st.integers(0, 99))
def test_an_episode_has_distinct_classes_and_rows(way: int, shot: int, query: int, seed: int) -> None:
    samples = Samples(np.zeros((60, 1)), np.arange(60) % 6 * 10)
    found = list(episodes(samples, way, shot, query, 3, Seed(seed)))
    assert len(found) == 3
    for e in found:
        assert e.support.shape == (way, shot)
        assert e.query.shape == (way, query)
        assert len(set(e.classes.tolist())) == way
        assert len(set(e.rows.tolist())) == way * (shot + query)
        assert (samples.y[e.support] == e.classes[:, None]).all()
        assert (samples.y[e.query] == e.classes[:, None]).all()
        assert e.query_labels.tolist() == [place for place in range(way) for _ in range(query)]
        assert e.support_labels.tolist() == [place for place in range(way) for _ in range(shot)]


def test_episodes_are_the_same_each_time_however_many_there_are() -> None:
    samples = blobs(6, 10)
    few, more = (list(episodes(samples, 3, 2, 2, n, Seed(4))) for n in (2, 5))
    assert digest([e.rows for e in few]) == digest([e.rows for e in more[:2]])
    assert digest(more[0].rows) != digest(more[1].rows)


def test_small_classes_are_passed_over_and_too_few_refused() -> None:
    samples = Samples(np.zeros((12, 1)), np.repeat([0, 1, 2], [5, 5, 2]))
    assert all(set(e.classes.tolist()) == {0, 1} for e in episodes(samples, 2, 2, 3, 9, Seed(0)))
    with pytest.raises(UserError, match=r"3-way episodes need 3 classes with 2 \+ 3 samples or more, and there are 2"):
        next(episodes(samples, 3, 2, 3, 1, Seed(0)))
    with pytest.raises(UserError, match="shot=0"):
        next(episodes(samples, 2, 0, 3, 1, Seed(0)))


def test_nearest_mean_of_the_worked_example() -> None:
    support, query = torch.tensor([[1.0, 0], [3, 0], [0, 1], [0, 1]]), torch.tensor([[1.5, 0.5]])
    logits = squared_distance_logits(support, query, 2)
    assert logits.tolist() == [[-0.5, -2.5]]
    assert float(logits.softmax(1)[0, 0]) == pytest.approx(0.880797, abs=1e-6)
    assert cosine_logits(support, query, 2)[0].tolist() == pytest.approx([1.5 / 2.5**0.5, 0.5 / 2.5**0.5])


def test_accuracy_counted_by_hand() -> None:
    """Features are the inputs: on a line, with means 0, 10 and 4, three of six queries are nearest to their own."""
    x = np.array([[0.0], [10], [4], [1], [3], [9], [6], [5], [8]], np.float32)
    samples = Samples(x, np.array([0, 1, 2, 0, 0, 1, 1, 2, 2]))
    drawn = [Episode(np.arange(3), np.array([[0], [1], [2]]), np.array([[3, 4], [5, 6], [7, 8]]))]
    model = nn.Sequential(nn.Identity(), nn.Linear(1, 3))
    # 1 -> 0 right, 3 -> 4 wrong, 9 -> 10 right, 6 -> 4 wrong, 5 -> 4 right, 8 -> 10 wrong
    assert nearest_mean_accuracy(model, samples, drawn).accuracies.tolist() == [0.5]


def test_the_interval_is_1_96_standard_errors() -> None:
    accuracies = np.array([0.5, 0.7, 0.9])
    found = EpisodeAccuracies(accuracies)
    assert found.mean == pytest.approx(0.7)
    assert found.half_width == pytest.approx(1.96 * 0.2 / 3**0.5)
    assert str(found) == "70.00 ± 22.63 %"
    assert np.isnan(EpisodeAccuracies(accuracies[:1]).half_width)


def test_good_features_are_right_and_random_labels_are_not() -> None:
    samples = blobs(8, 20)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(4))
    drawn = list(episodes(samples, 5, 5, 5, 30, Seed(0)))
    before = digest(dict(model.state_dict()))
    assert nearest_mean_accuracy(model, samples, drawn).mean > 0.95
    assert nearest_mean_accuracy(model, samples, drawn, cosine=True).mean > 0.85
    assert fine_tuned_accuracy(model, samples, drawn, steps=50, lr=0.5).mean > 0.9  # of five classes, with two outputs
    assert fine_tuned_accuracy(model, samples, drawn, steps=0).mean == pytest.approx(0.2)  # zero rows answer alike
    assert digest(dict(model.state_dict())) == before
    shuffled = Samples(samples.x, np.random.default_rng(1).permutation(samples.y))
    drawn = list(episodes(shuffled, 5, 5, 5, 60, Seed(0)))
    assert nearest_mean_accuracy(model, shuffled, drawn).mean == pytest.approx(0.2, abs=0.06)
