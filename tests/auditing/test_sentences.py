"""Sentences about horizons, policies and what a table cannot show, each from a constructed result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.auditing.test_findings import DATE, NAMES, SIZES, STRONG, aged, aging, order, text, verdict
from tests.auditing.test_policies import PARTS, Aged, Calm, policy

from driftline.auditing.answers import Horizons, _inputs, horizon_answer, policy_answer
from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import findings
from driftline.auditing.horizons import AgeCurve, Horizon
from driftline.auditing.metric import CLASS_METRICS
from driftline.auditing.recommendation import Costs, recommend
from driftline.auditing.shape import Cut, Shape
from driftline.auditing.shift import MeanLoss, PeriodLoss, Shift
from driftline.auditing.verdict import PairTests

FELL = Estimate(0.85, 0.82, 0.88)
OLD = aged(Shape("abrupt", cuts=(Cut(5),)), (DATE,))


def horizons(events: int = 4, p: float = 0.01, at: int | None = 2) -> Horizons:
    one = Horizon(3.5, 3.0, 4.0, 12, "models", limit=6, events=events, median=None, permuted=2.0, p=p)
    return Horizons(one, one, AgeCurve((FELL,) * 6, at), 0.9)


def sentence(found: Horizons, judged: Any = OLD) -> str:
    return horizon_answer(found, aging(judged, loss_since=(SIZES.staleness,)), "").text


def test_a_horizon_is_named_only_if_the_model_ages_and_the_curve_falls() -> None:
    assert "After 2 months an old model falls surely below 90% of a new one (85% [82, 88])" in sentence(horizons())
    assert "No horizon: within 6 months old models do not surely fall below 90% of a new one" in sentence(
        horizons(at=None)
    )
    assert "cause" not in sentence(horizons())
    assert "Age was not found to be the cause" in sentence(horizons(), verdict())
    assert sentence(horizons(), verdict(has_skill=False)).startswith("Not known")


def test_survival_is_compared_with_permuted_periods() -> None:
    assert "longer than in permuted periods (2, p = 0.01)" in sentence(horizons())
    assert "within noise: permuted periods give 2, so it says nothing about aging" in sentence(horizons(p=0.3))
    assert "permuted periods give 2 (p = 0.01), but no aging was found" in sentence(horizons(), verdict())
    never = sentence(horizons(events=0))
    assert never.count("not seen within 6 months") == 2
    assert "3.5" not in never


def answer(results: list[Any], judged: Any, parts: Any = PARTS, costs: Costs | None = None) -> str:
    metric = CLASS_METRICS["accuracy"]
    policies = recommend(results, judged(), metric, costs or Costs(), parts, False)
    return policy_answer(policies, aging(verdict()), {}, (), NAMES).text


BEST = policy("window-3", 0.80, (0.0, 0.0), 9)
HISTORY = policy("all-history", 0.75, (0.05, 0.07), 9, gained=0.05)
NEVER = policy("never", 0.70, (0.10, 0.12), 0, gained=0.0)
TRIVIAL = policy("trivial", 0.5, (0.3, 0.3), 0)


def test_recommendations_in_words() -> None:
    calm = answer([BEST, HISTORY, NEVER, TRIVIAL], Calm)
    assert calm.startswith("No retraining by the calendar. No aging was found.")
    assert "More rows would help" not in calm
    rows = (PARTS[0], Estimate(0.02, 0.01, 0.03))
    more = answer([BEST, HISTORY, NEVER, TRIVIAL], Calm, rows)
    assert "More rows would help: retraining on all history gains +5.0 points [4.0, 6.0]" in more
    nothing = replace(HISTORY, gained=Estimate(0.0, -0.01, 0.01))
    assert "More rows" not in answer([BEST, nothing, NEVER, TRIVIAL], Calm, rows), "more rows than a window's, no gain"
    unsure = replace(BEST, gained=Estimate(0.03, -0.01, 0.07))
    assert "retraining gains nothing sure: +3.0 points [-1.0, 7.0]" in answer([unsure, NEVER, TRIVIAL], Aged)
    assert "On this table no policy is better." in answer([replace(NEVER, behind=BEST.behind), TRIVIAL], Aged)
    assert "It is the best. Newer rows gain" in answer([BEST, NEVER, TRIVIAL], Aged)
    near = policy("every-4", 0.795, (0.005, 0.02), 2)
    knee = answer([BEST, near, NEVER, TRIVIAL], Aged)
    assert "It is the knee: 0.5 points" in knee
    assert "behind the best (window-3, 9 retrainings)" in knee
    cheap = answer([BEST, NEVER, TRIVIAL], Aged, costs=Costs(error=1.0, retraining=5.0))
    assert "It is the cheapest at 245 per 1,000 answers (never: 300)" in cheap


def test_several_dates_and_a_cost_that_is_not_sure() -> None:
    later = replace(DATE, at=DATE.at + 90, low=DATE.at + 89, high=DATE.at + 91)
    shape = Shape("abrupt", cuts=(Cut(5), Cut(8)))
    two = " ".join(findings(aging(aged(shape, (DATE, later))), NAMES))
    assert "the relation between inputs and target changed twice (p = 0.002): on 14 May 2024 (between" in two
    assert "after which an older model loses 9.1 points [8.2, 10.0]; on 12 Aug 2024 (between" in two
    unsure = replace(
        aging(OLD, loss_since=(SIZES.staleness,)), sizes=replace(SIZES, staleness=Estimate(0.01, -0.01, 0.03))
    )
    assert "It changes measurably, but costs less than 3.0 points." in " ".join(findings(unsure, NAMES))
    assert "measurably" not in text(OLD, loss_since=(SIZES.staleness,))


@pytest.mark.parametrize(("slope", "word"), [((0.6, 0.4, 0.8), "sure"), ((1.6, 1.2, 2.0), "timid")])
def test_probabilities_that_are_too_sure_or_too_timid(slope: tuple[float, float, float], word: str) -> None:
    off = verdict(raw=STRONG, shifted=STRONG, shape=Shape("gradual", start=0, end=11))
    assert f"Old models are too {word} of later periods" in text(off, slope=Estimate(*slope))
    assert "are off in later periods" in text(off, slope=Estimate(1.0, 0.9, 1.1))


def test_few_periods() -> None:
    few = replace(aging(verdict(recalibrated=PairTests(order(0.4), 0.5))), periods=tuple("abcdefgh"))
    assert "With only 8 periods an abrupt change may stay unnoticed" in " ".join(findings(few, NAMES))


@pytest.mark.parametrize(("auc", "text"), [(0.57, "does not surely distinguish"), (0.6, "AUC 0.60 [0.53, 0.67]")])
def test_the_farthest_of_many_periods_is_corrected(auc: float, text: str) -> None:
    """One of 15 intervals that leaves out 0.5 is no finding; that of the largest AUC is 1.5 times as wide."""
    one = Estimate(auc, auc - 0.047, auc + 0.047)
    loss = PeriodLoss(one, one, one, 100, 100, 90.0, 1.0, one)
    shift = Shift((), {f"2024-{k:02d}": loss for k in range(1, 16)}, MeanLoss(one, one, one, 15), ())
    assert shift.inputs_moved == ("AUC 0.60" in text)
    assert text in " ".join(_inputs(shift, False, NAMES))


def test_a_late_aging_that_is_not_certain_does_not_hide_what_newer_rows_gained() -> None:
    newer = (Estimate(0.03, 0.01, 0.05), Estimate(0.0, -0.01, 0.01))
    found = answer([BEST, HISTORY, NEVER, TRIVIAL], Calm, newer)
    assert "No aging was found. All the same, newer rows gain +3.0 points [1.0, 5.0]" in found
