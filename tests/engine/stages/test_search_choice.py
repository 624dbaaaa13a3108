"""The choice of a search and its noise, against numbers by hand."""

import math

import pytest

from driftline.engine.stages.search_choice import describe_choice, margin, runner_up, select
from driftline.engine.stages.search_round import DOMINATED, SearchState
from driftline.spec.job import SearchSpace


def space(*candidates, tie_break="smaller-lr"):
    return SearchSpace(
        rule="validation-streams", candidates=candidates, seeds=(0, 1), metrics=(("ood", "mean"),), tie_break=tie_break
    )


def scored(*scores, eliminated=None):
    return SearchState(scores=scores, eliminated=eliminated or ("",) * len(scores))


RATES = ({"lr": 1e-3}, {"lr": 1e-2}, {"lr": 1e-1})


def test_margins_are_of_pairs_of_runs():
    """Differences .03 and -.01: mean .01, standard deviation .0283, divided by the root of 2."""
    found = margin((0.63, 0.60), (0.60, 0.61))
    assert (found.difference, found.standard_error) == (pytest.approx(0.01), pytest.approx(0.02))
    assert found.within_noise
    steady = margin((0.63, 0.53), (0.60, 0.51))
    assert (steady.difference, steady.standard_error) == (pytest.approx(0.025), pytest.approx(0.005))
    assert not steady.within_noise, "both runs agree, however much they differ from each other"
    single = margin((0.63,), (0.60,))
    assert math.isnan(single.standard_error)
    assert not single.within_noise
    assert margin((0.6,), (0.6,)).within_noise


def test_within_noise_the_smaller_learning_rate_wins_unless_the_best_is_asked_for():
    state = scored((0.60, 0.61), (0.63, 0.60), (0.1, 0.1))
    assert select(state, space(*RATES)) == 0
    assert select(state, space(*RATES, tie_break="best")) == 1
    assert select(scored((0.60, 0.51), (0.63, 0.53), (0.1, 0.1)), space(*RATES)) == 1, "a clear choice stands"


def test_candidates_without_a_learning_rate_or_with_the_same_are_decided_by_their_score():
    state = scored((0.60, 0.61), (0.63, 0.60))
    assert select(state, space({"epochs": 1}, {"epochs": 2})) == 1
    assert select(state, space({"lr": 1e-3, "epochs": 1}, {"lr": 1e-3, "epochs": 2})) == 1


def test_an_eliminated_candidate_is_never_chosen_within_noise():
    state = scored((0.60, 0.61), (0.63, 0.60), eliminated=(DOMINATED, ""))
    assert select(state, space(*RATES[:2])) == 1
    failed = scored((), (0.63, 0.60), (0.62, 0.61), eliminated=("failed: no", "", ""))
    assert select(failed, space(*RATES)) == 1
    assert runner_up(failed, 1) == 2
    assert select(scored((), (), eliminated=("failed: a", "failed: b")), space(*RATES[:2])) is None


def test_the_card_has_the_runner_up_and_a_negative_margin_where_the_tie_break_decided():
    state = scored((0.60, 0.61), (0.63, 0.60), (0.1, 0.1))
    assert describe_choice(state, space(*RATES), 0) == {
        "runner_up": {"lr": 1e-2, "score": pytest.approx(0.615)},
        "margin": pytest.approx(-0.01),
        "margin_se": pytest.approx(0.02),
        "within_noise": True,
    }
    assert describe_choice(scored(()), space({"lr": 1.0}), 0) == {}, "one candidate has no rival"
