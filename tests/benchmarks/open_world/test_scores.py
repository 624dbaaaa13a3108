"""The scores of an open-world run: the worked example as a record, and what its intervals rest on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from driftline import registry
from driftline.benchmarks import base
from driftline.benchmarks.open_world.scores import NAMES, episodes, rows
from driftline.metrics.confidence import wilson
from driftline.record.card import ComputeCard

LABELS = np.array([0, 1, 0, 1, 2, 1, 0, 2])
ANSWERS = np.array([0, 0, 0, 1, 1, 0, 0, 2])
SCORE = np.array([0.1, 0.7, 0.2, 0.6, 0.4, 0.5, 0.1, 0.3])
PROTOCOL: dict[str, Any] = {"pretrain_classes": [0], "novel_classes": [1, 2], "head": 2}
COMPUTE = ComputeCard(forward_macs=112, backward_macs=48, cached_macs=240)


def answers(**changes: Any) -> pd.DataFrame:
    usual = {"truth": LABELS, "prediction": ANSWERS, "correct": LABELS == ANSWERS, "confidence": 1 - SCORE}
    return pd.DataFrame({**usual, "distance": 10 * SCORE, **changes})


def scored(frame: pd.DataFrame, compute: ComputeCard = COMPUTE, window: int = 4) -> pd.DataFrame:
    given: dict[str, Any] = {"window": window, "resamples": 200, "rng": np.random.default_rng(0)}
    return base.scores_frame(rows(frame, PROTOCOL, compute, **given))


def values(frame: pd.DataFrame) -> dict[tuple[str, str], float]:
    summary = frame[frame["stat"] != "each"]
    return dict(zip(zip(summary["metric"], summary["stat"], strict=True), summary["value"].round(6), strict=True))


def test_the_worked_example() -> None:
    found = values(scored(answers()))
    expected = {
        "overall": 0.625,
        "mean-class": 0.611111,
        "novel-head": 0.333333,
        "pretrain-head": 1.0,
        "novel-tail": 0.5,
        "k+1": 0.75,
        "unseen-auroc-hg": 0.833333,
        "unseen-auroc-mdt": 0.833333,
        "clock-auroc": 0.666667,
        "matched-auroc-hg": 0.833333,
        "best-f1-mdt": 0.666667,
        "clock-f1": 0.571429,  # the first five are flagged: 2 * 2 / (2 + 3 + 2)
    }
    assert {name: found[name, "mean"] for name in expected} == expected
    assert math.isnan(found["pretrain-tail", "mean"])
    assert (found["macs", "final"], found["macs-uncached", "final"]) == (160, 400)
    assert found["rolling", "final"] == 0.5


def test_all_names_are_registered_metrics_and_all_are_given() -> None:
    frame = scored(answers())
    assert set(frame["metric"]) == set(NAMES)
    assert set(NAMES) <= set(registry.names("metric"))
    assert not frame.duplicated(["metric", "stat", "time"]).any()


def test_what_numbers_rest_on() -> None:
    frame = scored(answers()).set_index(["metric", "stat"])
    n = frame.loc[frame.index.get_level_values(1) != "each", "n"]
    assert n["overall", "mean"] == 8
    assert n["mean-class", "mean"] == 3
    assert n["pretrain-tail", "mean"] == 0
    assert n["unseen-auroc-hg", "mean"] == 2
    assert n["unseen-auroc-hg-any", "mean"] == 3  # the first of class 0 too
    assert n["rolling", "final"] == 4
    assert set(frame["unit"]) == {"examples", "classes"}


def test_a_window_that_the_end_cuts_short_is_left_out() -> None:
    frame = scored(answers(), window=3)
    each = frame[frame["stat"] == "each"]
    assert list(zip(each["time"], each["n"], each["value"].round(6), strict=True)) == [
        ("3", 3, 0.666667),
        ("6", 3, 0.333333),
    ]
    assert values(frame)["rolling", "final"] == 0.333333
    short = scored(answers(), window=9)
    assert "each" not in set(short["stat"])
    assert values(short)["rolling", "final"] == 0.625


def test_intervals() -> None:
    frame = scored(answers()).set_index(["metric", "stat"])
    low, high = wilson(5, 8)
    assert tuple(frame.loc[("overall", "mean"), ["low", "high"]]) == pytest.approx((low, high))
    of_classes = frame.loc[("mean-class", "mean")]
    assert 1 / 3 <= of_classes["low"] < of_classes["value"] < of_classes["high"] <= 1
    drawn = frame.loc[("unseen-auroc-hg", "mean")]  # placements are 6/6 and 4/6
    assert (drawn["low"], drawn["high"]) == pytest.approx((4 / 6, 1))
    exact = frame.loc[("macs", "final")]
    assert exact["low"] == exact["value"] == exact["high"]
    again = scored(answers()).set_index(["metric", "stat"])
    pd.testing.assert_frame_equal(frame, again)


def test_a_learner_without_scores_or_compute() -> None:
    silent = answers(confidence=np.nan).drop(columns="distance")
    found = values(scored(silent, ComputeCard()))
    assert found["clock-auroc", "mean"] == 0.666667
    assert not any(name.startswith(("macs", "k+1", "unseen", "best", "matched")) for name, _ in found)


def test_without_distances_the_softmax_decides() -> None:
    found = values(scored(answers().drop(columns="distance")))
    assert found["k+1", "mean"] == 0.75
    assert ("unseen-auroc-mdt", "mean") not in found


def test_a_threshold_that_was_given_is_taken() -> None:
    for threshold, expected in ((4.5, 0.625), (6.5, 0.75), (0.0, 0.25)):  # three, one and all are called unseen
        given: dict[str, Any] = {"window": 4, "resamples": 5, "rng": np.random.default_rng(0)}
        found = values(base.scores_frame(rows(answers(), {**PROTOCOL, "threshold": threshold}, COMPUTE, **given)))
        assert found["k+1", "mean"] == expected


def test_a_sample_without_a_score_is_left_out() -> None:
    distance = 10 * SCORE
    distance[1] = np.nan
    frame = scored(answers(distance=distance)).set_index(["metric", "stat"])
    assert frame.loc[("unseen-auroc-mdt", "mean"), "n"] == 1
    assert frame.loc[("unseen-auroc-mdt", "mean"), "value"] == pytest.approx(4 / 6)


def test_a_stream_without_new_classes() -> None:
    old = answers(truth=np.zeros(8, int), correct=np.ones(8))
    found = values(scored(old))
    assert math.isnan(found["unseen-auroc-mdt", "mean"])
    assert math.isnan(found["clock-f1", "mean"])
    assert found["k+1", "mean"] == 1


def test_episodes() -> None:
    row = episodes([[1, 0], [1, 1]], "5-shot 5-way", resamples=100, rng=np.random.default_rng(0))
    assert (row["metric"], row["stat"], row["time"]) == ("episodic", "each", "5-shot 5-way")
    assert (row["value"], row["n"], row["unit"]) == (0.75, 2, "episodes")
    assert (row["low"], row["high"]) == (0.5, 1.0)


def test_an_answer_without_a_score_is_never_unseen() -> None:
    """The second sample, which is unseen, has none: no threshold gains anything."""
    distance = np.where(np.arange(8) == 1, np.nan, 10 * SCORE)
    assert values(scored(answers(distance=distance)))["k+1", "mean"] == 0.625
