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


def test_a_perfect_epoch_is_the_last_because_no_later_one_could_be_kept() -> None:
    """The weights, score and epoch are those of the fit that goes on, which any rule allows to be equal at most."""
    for later in ([1.0, 0.9] * 50, [0.2, 0.99] * 50):
        found, epochs = follow([0.1, 0.7, 0.6, 1.0, *later], epochs=90)
        assert (found.score, found.epoch, epochs) == (1.0, 3, 3)
        assert found.weights["weight"].item() == 3
        assert found.curve == [0.1, 0.7, 0.6, 1.0]
    assert follow([0.1, 0.7, 0.6, 0.999, *([0.9, 0.8] * 50)], epochs=90)[1] == 90
    found, epochs = follow([1.0] * 101)
    assert (found.epoch, epochs) == (0, 0)


def test_both_rules_keep_the_same_epoch_if_the_best_comes_before_patience_ends() -> None:
    curve = [0.1, 0.5, 0.4, 0.6, 0.55, 0.7, *([0.69, 0.68] * 48)]
    paper, epochs = follow(curve, epochs=90)
    short, fewer = follow(curve, epochs=90, stopping="best")
    assert (paper.score, paper.epoch, paper.weights) == (short.score, short.epoch, short.weights)
    assert (epochs, fewer) == (90, 11)
