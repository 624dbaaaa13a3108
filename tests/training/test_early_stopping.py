"""How long a fit goes on, and which weights it keeps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from driftline.seeds import Seed
from driftline.training.early_stopping import FitCurve, fit_with_early_stopping, infinite_batches, shuffled_batches


def follow(scores: list[float], **settings: Any) -> tuple[FitCurve, int]:
    """A fit whose validation accuracy goes as given; the weight is the number of epochs made."""
    network = nn.Linear(1, 1, bias=False)
    epochs = 0

    def train(number: int) -> None:
        nonlocal epochs
        epochs = number
        nn.init.constant_(network.weight, number)

    nn.init.constant_(network.weight, 0)
    return fit_with_early_stopping(
        network, train, lambda: scores[epochs], **{"epochs": 100, "patience": 5, **settings}
    ), epochs


def test_zigzag_never_stops_against_the_previous_epoch_and_stops_at_seven_against_the_best() -> None:
    zigzag = [0.4] + [0.50, 0.49] * 50
    assert follow(zigzag)[1] == 100
    assert follow(zigzag, stopping="best")[1] == 7


def test_six_epochs_without_a_rise_end_a_fit() -> None:
    found, epochs = follow([0.1, 0.2, 0.3] + [0.3] * 98)
    assert epochs == 2 + 6
    assert (found.score, found.epoch) == (0.3, 2)


def test_the_untrained_weights_win_if_nothing_is_strictly_better() -> None:
    found, _ = follow([0.5, 0.5, 0.4] + [0.5] * 98)
    assert (found.score, found.epoch) == (0.5, 0)
    assert found.weights["weight"].item() == 0


def test_the_first_of_equal_epochs_is_kept() -> None:
    found, _ = follow([0.1, 0.6, 0.2, 0.6] + [0.1] * 97)
    assert found.epoch == 1
    assert found.weights["weight"].item() == 1
    assert found.curve[:4] == [0.1, 0.6, 0.2, 0.6]


def test_an_epoch_is_every_row_once() -> None:
    parts = shuffled_batches(250, 100, Seed(1))
    assert [len(part) for part in parts] == [100, 100, 50]
    assert torch.cat(parts).sort().values.tolist() == list(range(250))
    assert torch.cat(parts).tolist() != list(range(250))


@pytest.mark.parametrize(("rows", "sizes"), [(201, [100, 101]), (1, [2]), (101, [101])])
def test_no_batch_has_a_single_row(rows: int, sizes: list[int]) -> None:
    assert [len(part) for part in shuffled_batches(rows, 100, Seed(1))] == sizes


def test_batches_without_end_pass_over_all_rows_again_in_another_order() -> None:
    batches = infinite_batches(4, 2, Seed(3))
    passes = [torch.cat([next(batches), next(batches)]) for _ in range(6)]
    assert all(sorted(one.tolist()) == [0, 1, 2, 3] for one in passes)
    assert len({tuple(one.tolist()) for one in passes}) > 1
