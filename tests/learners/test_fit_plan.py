"""Fits are known by what they say, and a winner by its score."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from driftline.learners.fit_plan import (
    Expansion,
    FitSpec,
    SearchPhase,
    SearchSpace,
    Winner,
    rank_scores,
    required_fits,
)
from driftline.training.measurements import Fisher
from driftline.training.objectives import IRM
from driftline.training.regularization import L2ToStart


def test_the_paper_grid_starts_with_its_first_values() -> None:
    points = SearchSpace().points()
    assert len(points) == 8
    assert points[0] == {"lr": 1e-3, "weight_decay": 1e-4, "dropout": 0.0}
    assert points[1] == {"lr": 1e-3, "weight_decay": 1e-4, "dropout": 0.5}
    assert points[-1] == {"lr": 1e-4, "weight_decay": 1e-2, "dropout": 0.5}


def test_one_axis_more_costs_nothing_under_the_same_budget_and_threefold_under_the_papers() -> None:
    same = SearchSpace().points(extra=(0.01, 0.1, 1.0))
    paper = SearchSpace(budget="paper").points(extra=(0.01, 0.1, 1.0))
    assert (len(same), len(paper)) == (8, 24)
    plain = [{name: value for name, value in point.items() if name != "strength"} for point in same]
    assert plain == SearchSpace().points()  # no other setting is lost
    assert len({tuple(point.values()) for point in paper}) == 24
    small = SearchSpace(lr=(1e-3, 3e-4), weight_decay=(1e-4,), dropout=(0.0,)).points(extra=(0.01, 0.1, 1.0))
    assert [(point["lr"], point["strength"]) for point in small] == [(1e-3, 0.01), (3e-4, 0.1)]


def test_a_further_axis_that_fits_the_budget_is_tried_in_full() -> None:
    points = SearchSpace().points(weight_decay=(0.0,), extra=(0.1, 10.0))
    assert len({tuple(point.values()) for point in points}) == 8
    three = SearchSpace().points(weight_decay=(0.0,), extra=(0.1, 1.0, 10.0))
    assert len(three) == 8
    assert {(point["lr"], point["dropout"]) for point in three} == {(a, b) for a in (1e-3, 1e-4) for b in (0.0, 0.5)}
    assert {point["strength"] for point in three} == {0.1, 1.0, 10.0}


def test_an_axis_can_take_the_place_of_weight_decay() -> None:
    points = SearchSpace().points(weight_decay=(0.0,), strength=(10.0, 1000.0))
    assert len(points) == 8
    assert {(point["weight_decay"], point["strength"]) for point in points} == {(0.0, 10.0), (0.0, 1000.0)}


def test_everything_that_a_trial_says_moves_its_key() -> None:
    first = FitSpec((0,), (0,))
    phase = SearchPhase((first, replace(first, lr=1e-4)))
    fit_spec = FitSpec((0, 1), (1,), start=phase.best, growth=Expansion("side-1", "separate", 2))
    changes = {
        "train": (1,),
        "valid": (0,),
        "lr": 1e-2,
        "weight_decay": 1.0,
        "dropout": 0.5,
        "start": Winner(phase, 1),
        "from_initial": True,
        "objective": IRM(2.0),
        "penalty": L2ToStart(0.1),
        "measurement": Fisher(5),
        "layers": ("fc",),
        "top": 2,
        "growth": Expansion("side-1", "separate", 3),
        "moving_statistics": True,
    }
    keys = {fit_spec.key, *(replace(fit_spec, **{name: value}).key for name, value in changes.items())}
    assert len(keys) == len(changes) + 1
    assert (
        FitSpec((0, 1), (1,), start=SearchPhase(phase.fits).best, growth=Expansion("side-1", "separate", 2)).key
        == fit_spec.key
    )


def test_long_chains_are_described_in_linear_time() -> None:
    phase = SearchPhase(tuple(FitSpec((0,), (0,), **point) for point in SearchSpace().points()))
    for t in range(1, 60):
        phase = SearchPhase(tuple(FitSpec((t,), (t,), start=phase.best, **point) for point in SearchSpace().points()))
    assert len(list(required_fits(phase))) == 60 * 8


def test_what_is_needed_comes_first_and_once() -> None:
    past = SearchPhase((FitSpec((0,), (0,)), FitSpec((0,), (0,), lr=1.0)))
    probed = SearchPhase((FitSpec((1,), (1,), start=past.best, layers=("fc",)),))
    both = SearchPhase((FitSpec((1,), (1,), start=probed.best), FitSpec((1,), (1,), start=past.best)))
    order = [fit_spec.key for fit_spec in required_fits(both)]
    assert order == [fit_spec.key for fit_spec in (*past.fits, *probed.fits, *both.fits)]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=1, max_size=8))
def test_ranking_is_by_score_then_by_place(scores: list[float]) -> None:
    order = rank_scores(scores)
    assert sorted(order) == list(range(len(scores)))
    assert all((scores[a], -a) > (scores[b], -b) for a, b in pairwise(order))
