"""How long a fit goes on, and which weights it keeps."""

from __future__ import annotations

from typing import Any

from torch import nn

from driftline.training.early_stopping import FitCurve, fit_with_early_stopping


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
