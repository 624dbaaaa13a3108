"""Leaderboards: the worked example, how sure the choice is, and what stands in for methods that cannot run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.report.analysis.leaderboard import Leaderboard, leaderboard
from driftline.report.analysis.matrix import MatrixView
from driftline.report.figures import critical_difference
from driftline.report.figures.base import to_table
from driftline.report.tables.leaderboard import leaderboard_table

WORKED = np.array([[0.90, 0.85, 0.70], [0.90, 0.84, 0.70], [0.90, 0.86, 0.70], [0.30, 0.60, 0.70]])
SEEDS = np.array([-0.02, 0.0, 0.02])


def board(scores: np.ndarray = WORKED, methods: tuple[str, ...] = ("A", "er", "C"), **changes: Any) -> Leaderboard:
    shape = scores.shape
    parts: dict[str, Any] = {
        "settings": tuple(f"drift {k + 1}" for k in range(shape[0])),
        "methods": methods,
        "scores": scores[:, :, np.newaxis] + SEEDS,
        "stands_in": np.zeros(shape, bool),
        "compute": np.ones(shape),
        "typical_compute": np.ones(shape[0]),
        "left_out": {},
    }
    return Leaderboard(**{**parts, **changes})


def test_the_choice_has_the_smallest_largest_regret() -> None:
    made = board()
    assert made.choice == "er"
    assert [regret.value for regret in made.max_regrets] == pytest.approx([0.4, 0.1, 0.2])
    assert made.worst_settings == ["drift 4", "drift 4", "drift 1"]
    assert made.choices_without == {"drift 1": "er", "drift 2": "er", "drift 3": "er", "drift 4": "A"}
    assert made.share_of_draws == 1.0, "seeds move all methods together here"
    assert [(rank.low, rank.value, rank.high) for rank in made.ranks] == [(v, v, v) for v in (1.5, 2.0, 2.5)]


def test_noise_of_seeds_widens_intervals_and_shakes_the_choice() -> None:
    noise = np.random.default_rng(0).normal(0, 0.3, (4, 3, 3))
    made = board(scores=WORKED, methods=("A", "er", "C"))
    shaken = Leaderboard(**{**vars(made), "scores": made.scores + noise - noise.mean(axis=2, keepdims=True)})
    assert shaken.means == pytest.approx(made.means)
    regret = shaken.max_regrets[0]
    assert regret.low < 0.39 < 0.41 < regret.high
    assert shaken.share_of_draws < 0.9


def test_ranks_at_equal_compute_are_of_methods_that_spend_no_more_than_usual() -> None:
    compute = np.ones((4, 3))
    compute[2, 0] = 1.2
    assert board(compute=compute).ranks_at_equal_compute == {1: 1.25, 2: 1.75}
    compute[:, 2] = np.nan  # not counted
    assert board(compute=compute).ranks_at_equal_compute == {}, "one method alone has no rank"
    assert board(typical_compute=np.full(4, np.nan)).ranks_at_equal_compute == {0: 1.5, 1: 2.0, 2: 2.5}


def test_a_method_is_separated_only_by_enough_settings() -> None:
    few = board()
    assert not few.separated.any(), "four settings cannot reach 5%"
    sentence = " None can be: 2 comparisons over 4 settings have a corrected p of at least 0.250."  # 2 of 2 / 2^4
    assert few.inseparable == sentence
    assert sentence in " ".join(leaderboard_table(few).notes)
    many = np.tile([[0.9, 0.8, 0.895]], (10, 1)) + np.random.default_rng(0).normal(0, 0.001, (10, 1))
    many[::2, 2] += 0.01
    assert board(many).separated.tolist() == [False, True, False]
    assert board(many).inseparable == ""


def test_the_table_says_the_answer_and_what_it_depends_on() -> None:
    table = leaderboard_table(board())
    assert table.title == (
        "If you do not know which kind of drift comes, deploy er: its largest distance from the best method of a "
        "setting is 10.0 points (drift 4)"
    )
    assert [row.name for row in table.rows] == ["er", "C", "A"]
    first = [cell.content for cell in table.rows[0].cells]
    assert first[:6] == ["10.0 [10.0, 10.0]", "drift 4", "2.0 [2.0, 2.0]", "78.8", "60.0", "6.2"]
    text = " ".join(table.notes)
    assert "The choice is another one without drift 4: A." in text
    assert "Nemenyi's critical difference is 1.7 ranks" in text
    assert "Separated from the best mean rank (Wilcoxon over settings, Holm-corrected): none." in text
    assert "n = 4 settings, 3 seed(s)" in text
    assert next(iter(table.csv_records()))["max_regret"] == pytest.approx(0.1)


def test_a_matrix_of_one_column_has_no_leaderboard() -> None:
    with pytest.raises(UserError, match="two settings or more"):
        leaderboard(MatrixView((), ("a", "b"), 1, {}, {}))


def test_the_figure_has_the_methods_by_rank_and_names_the_critical_difference() -> None:
    many = np.tile([[0.9, 0.8, 0.895]], (10, 1))
    many[::2, 2] += 0.01
    made = critical_difference._rows(board(many), "10 settings")
    assert [(row["method"], row["rank"]) for row in made] == [("A", 1.5), ("C", 1.5), ("er", 3.0)]
    assert [row["verdict"] == critical_difference.APART for row in made] == [False, False, True]
    chart = critical_difference.CriticalDifference().chart(to_table(made, []))
    assert "mean rank" in chart.to_json()
