"""The worked example of three episodes in both indexings, the rules for what is undefined, and resampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driftline import registry
from driftline.errors import UserError
from driftline.metrics.refinement import (
    composition,
    cumulative_success,
    evaluation_steps,
    overall_criterion,
    pairwise_disagreement,
    retention,
    scores,
)
from driftline.published import numbers as published
from driftline.testing import check_metric

NAMES = ["efr", "ukr", "okr", "csr", "kg", "oec", "ukr-before", "okr-before", "kg-before", "csr-strict"]
NAN = np.nan


def flags(right: int, of: int) -> list[int]:
    return [1] * right + [0] * (of - right)


ANSWERED = [[1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 0]]
COMMON: dict[str, Any] = {
    "answered": ANSWERED,
    "fixed": [[1], [1, 0], [1, 1, 0]],
    "upstream": [flags(k, 4) for k in (4, 3, 3, 2)],
    "held_out": [flags(k, 5) for k in (2, 2, 3, 4)],
}
PAST = {
    "after": [None, None, flags(4, 4), flags(6, 8)],
    "before": [None, flags(3, 4), flags(7, 8), flags(9, 12)],
}


def example(indexing: str = "after", **options: Any) -> Any:
    return scores(**COMMON, past=PAST[indexing], indexing=indexing, **options)


@pytest.mark.parametrize(
    ("indexing", "name", "values", "mean", "final"),
    [
        ("after", "efr", [1, 0.5, 2 / 3], 0.722222, 0.666667),
        ("after", "ukr", [0.75, 0.75, 0.5], 0.666667, 0.5),
        ("after", "okr", [NAN, 1, 0.75], 0.875, 0.75),
        ("after", "csr", [0.75, 0.625, 0.5], 0.625, 0.5),
        ("after", "kg", [0.4, 0.6, 0.8], 0.6, 0.8),
        ("after", "oec", [NAN, 0.74375, 0.6375], 0.691667, 0.6375),
        ("before", "efr", [1, 0.5, 2 / 3], 0.722222, 0.666667),
        ("before", "ukr", [1, 0.75, 0.75], 0.833333, 0.75),
        ("before", "okr", [NAN, 0.75, 0.875], 0.8125, 0.875),
        ("before", "csr", [0.75, 0.625, 0.5], 0.625, 0.5),
        ("before", "kg", [0.4, 0.4, 0.6], 0.466667, 0.6),
        ("before", "oec", [NAN, 0.63125, 0.68125], 0.684375, 0.68125),
    ],
)
def test_the_worked_example(indexing: str, name: str, values: list[float], mean: float, final: float) -> None:
    curve = dict(example(indexing))[name]
    np.testing.assert_allclose(curve.values, values, atol=1e-12)
    assert (round(float(curve.mean), 6), round(float(curve.final), 6)) == (mean, final)


def test_the_mean_of_oec_is_of_means_not_of_its_curve() -> None:
    found = example()
    assert found.oec.mean == pytest.approx(0.691667, abs=1e-6)
    assert np.nanmean(found.oec.values) == pytest.approx(0.690625)


def test_strict_csr_leaves_this_step_out() -> None:
    found = example(csr="strict")
    np.testing.assert_array_equal(found.csr.values, [NAN, 0.75, 0.625])
    assert float(found.csr.mean) == 0.6875
    assert float(found.oec.final) == pytest.approx((0.5 + 0.75 + 0.625 + 0.8) / 4)


def test_models_that_were_not_evaluated_are_skipped() -> None:
    sparse = {**COMMON, "upstream": [flags(4, 4), None, None, flags(2, 4)], "held_out": [None, flags(1, 5), None, None]}
    found = scores(**sparse, past=PAST["after"])
    np.testing.assert_array_equal(found.ukr.values, [NAN, NAN, 0.5])
    assert float(found.ukr.mean) == 0.5
    assert float(found.kg.mean) == 0.2
    assert np.isnan(found.kg.final)
    assert np.isnan(found.oec.final)
    assert float(found.oec.mean) == pytest.approx((0.5 + 0.875 + 0.625 + 0.2) / 4)


def test_no_errors_no_rate_of_fixing() -> None:
    found = scores([[1, 1], [0, 1]], [[], [1]], [None] * 3, [None] * 3, [None] * 3)
    np.testing.assert_array_equal(found.efr.values, [NAN, 1])
    assert float(found.efr.mean) == 1
    assert np.isnan(found.ukr.mean)
    nothing = scores([[1, 1]], [None], [None] * 2, [None] * 2, [None] * 2)
    assert np.isnan(nothing.efr.mean)
    assert float(nothing.csr.final) == 1


def test_a_partly_right_answer_is_an_error_and_no_success() -> None:
    found = scores([[0.8, 1]], [[1]], [[0.5], [0.7]], [None] * 2, [None] * 2)
    assert float(found.csr.final) == 0.5
    assert float(found.efr.final) == 1
    assert float(found.ukr.final) == 0.7


def test_curves_of_a_stack_are_those_of_its_entries() -> None:
    right, asked = np.array([[3, 2, 1], [0, 4, 4]]), np.array([[4, 4, 4], [0, 4, 8]])
    for compute in (retention, cumulative_success):
        both = compute(right, asked)
        for k in (0, 1):
            np.testing.assert_array_equal(both.values[k], compute(right[k], asked[k]).values)
            np.testing.assert_array_equal(both.mean[k], compute(right[k], asked[k]).mean)
    assert np.shape(overall_criterion(right / 4, right / 4, right / 4, right / 4).mean) == (2,)


def test_draws_scatter_around_the_value_as_much_as_binomials_do() -> None:
    rng = np.random.default_rng(0)
    answered = [flags(30, 50), flags(20, 50)]
    fixed = [flags(10, 20), flags(24, 30)]
    exam = [flags(80, 100), flags(60, 100), flags(60, 100)]
    given = {"upstream": exam, "past": [None, None, flags(40, 50)], "held_out": exam}
    found = scores(answered, fixed, **given, resamples=4000, rng=rng)
    assert found.csr.values.shape == (4000, 2)
    spread = {name: curve.values[:, -1].std() for name, curve in found}
    # CSR(2): two episodes of 50 with 30 and 20 right, drawn apart; H: 100 with 60 right.
    assert spread["csr"] == pytest.approx(np.sqrt(2 * 50 * 0.6 * 0.4) / 100, rel=0.05)
    assert spread["ukr"] == pytest.approx(np.sqrt(0.6 * 0.4 / 100), rel=0.05)
    # EFR: the errors among the queries drawn, whose number varies, so a little more than with 30 each time.
    assert spread["efr"] == pytest.approx(np.sqrt(0.8 * 0.2 / 30), rel=0.08)
    assert found.efr.values[:, -1].mean() == pytest.approx(0.8, abs=0.01)


def test_an_example_is_drawn_for_all_models_together() -> None:
    exam = [flags(60, 100)] * 3
    found = scores(
        ANSWERED[:2], COMMON["fixed"][:2], exam, [None] * 3, exam, resamples=50, rng=np.random.default_rng(0)
    )
    np.testing.assert_array_equal(found.ukr.values[:, 0], found.ukr.values[:, 1])
    assert found.ukr.values[:, 0].std() > 0
    assert not np.array_equal(found.ukr.values, found.kg.values)


def test_past_queries_are_drawn_with_their_episodes() -> None:
    """Model 2, asked again about the four queries of episode 1 with the same answers, moves as CSR(1) does."""
    given = {"upstream": [None] * 3, "held_out": [None] * 3, "past": [None, None, ANSWERED[0]]}
    together = {"past_of": [None, None, [0, 1, 2, 3]]}
    args = (ANSWERED[:2], COMMON["fixed"][:2])
    linked = scores(*args, **given, **together, resamples=200, rng=np.random.default_rng(1))
    apart = scores(*args, **given, resamples=200, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(linked.okr.values[:, 1], linked.csr.values[:, 0])
    assert not np.array_equal(apart.okr.values[:, 1], apart.csr.values[:, 0])
    assert float(scores(*args, **given, **together).okr.final) == 0.75


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"answered": []}, "at least one episode"),
        ({"answered": [[1, 1], [], [1]]}, "none of them empty"),
        ({"answered": [[1, NAN, 0, 1], *ANSWERED[1:]]}, "'answered' lists a number from 0"),
        ({"fixed": [[1], [1], [1, 1, 0]]}, "step 1 has 2 errors, and 'fixed' has 1"),
        ({"upstream": COMMON["upstream"][1:]}, "need 4 rows of 'upstream', not 3"),
        ({"held_out": [flags(1, 5), flags(1, 4), None, None]}, r"rows of \[4, 5\]"),
        ({"indexing": "later"}, "no indexing 'later'"),
        ({"csr": "strictly"}, "Did you mean 'strict'"),
        ({"past_of": [None, None, [0, 1, 2, 99], range(8)]}, "place of its query"),
        ({"resamples": 10}, "random generator"),
    ],
)
def test_what_cannot_be_scored_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        scores(**{**COMMON, "past": PAST["after"], **change})


def test_the_evaluation_points_of_paper_and_code() -> None:
    assert evaluation_steps(100, 10) == [*range(10, 101, 10)]
    assert evaluation_steps(100, 10, "before") == [*range(0, 100, 10), 99]
    assert evaluation_steps(100, 50, "before") == [0, 50, 99]
    assert evaluation_steps(3) == [1, 2, 3]
    assert evaluation_steps(3, 10) == [3]


def test_differences_are_of_raw_answers_and_spans_include_both_ends() -> None:
    output = {
        "one": [["a"], ["a", "b", "c", "d"], ["x"], ["q"]],
        "two": [["b"], ["a", "x", "c", "y"], ["x"], ["r"]],
        "three": [["a"], ["a", "b", "c", "D"], ["X"], ["q"]],
    }
    found = pairwise_disagreement(output, 1, 1)
    assert found[0, 1] == 0.5
    assert found[0, 2] == 0.25
    assert np.isnan(np.diag(found)).all()
    assert pairwise_disagreement(output, 1, 2)[0, 2] == 0.4
    np.testing.assert_array_equal(found, found.T)
    with pytest.raises(UserError, match=r"span 2\.\.4 is not within the steps 0\.\.3"):
        pairwise_disagreement(output, 2, 4)
    with pytest.raises(UserError, match="one 1, two 2"):
        pairwise_disagreement({"one": [["a"]], "two": [["a", "b"]]}, 0, 0)


def test_composition_of_queries_and_of_errors() -> None:
    groups, wrong = [[0, 0, 0], [2, 1, 2]], [[0, 1, 0], [1, 0, 1]]
    assert composition(groups, 4).tolist() == [[3, 0, 0, 0], [0, 1, 2, 0]]
    assert composition(groups, 4, keep=wrong).tolist() == [[1, 0, 0, 0], [0, 0, 2, 0]]


@pytest.mark.parametrize("name", NAMES)
def test_metrics_are_registered_and_keep_the_contract(name: str) -> None:
    check_metric(registry.get("metric", name))


def test_each_variant_computes_what_its_name_says() -> None:
    right, asked = [4, 3, 3, 2], [4, 4, 4, 4]
    assert registry.get("metric", "ukr").compute(right, asked).values.tolist() == [0.75, 0.75, 0.5]
    assert registry.get("metric", "ukr-before").compute(right, asked).values.tolist() == [1, 0.75, 0.75]
    assert registry.get("metric", "csr").compute(right, asked).values[-1] == 0.75
    assert registry.get("metric", "csr-strict").compute(right, asked).values[-1] == pytest.approx(10 / 12)
    assert "f_{t-1}" in registry.get("metric", "kg-before").formula


def printed(protocol: str = "alpha=0.9, beta=0.5, gamma=0.8") -> dict[tuple[str, str, str], float]:
    return {(n.method, n.metric, n.stat): n.value for n in published.lookup("refinement", "qa", protocol)}


def test_printed_numbers_are_those_of_the_paper() -> None:
    table = printed()
    assert table["frozen", "okr", "final"] == 0.3613
    assert table["mir+l2", "oec", "final"] == 0.6991
    assert table["cft", "efr", "mean"] == 0.9736
    assert ("offline", "ukr", "mean") not in table  # a dash in the paper
    assert printed("alpha=0.9, beta=0.1, gamma=0.8")["er(replay_every=3)", "oec-gain", "final"] == 0.2632
    assert len(table) == 16 * 11 - 5 + 5


def test_the_papers_own_overall_scores_follow_from_its_other_columns() -> None:
    """So OEC is the mean of these four, without EFR, in means and finals; and Table 2 is a difference of Table 1."""
    table = printed()
    checked = 0
    for (method, metric, stat), value in table.items():
        if metric == "oec":
            four = [np.array([table[method, part, stat]]) for part in ("ukr", "okr", "csr", "kg")]
            assert value == pytest.approx(overall_criterion(*four).final, abs=1.01e-4)
            checked += 1
        if metric == "oec-gain":
            gain = table[method, "oec", "final"] - table["frozen", "oec", "final"]
            assert value == pytest.approx(gain, abs=1e-9)
            checked += 1
    assert checked == 16 + 15 + 5
