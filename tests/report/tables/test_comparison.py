"""Pairs of methods and ranks over settings, from runs whose numbers are known beforehand."""

import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.comparisons import Comparison, compare_pairs
from driftline.report.analysis.groups import groups
from driftline.report.analysis.ranking import rank
from driftline.report.analysis.result_table import headline_columns
from driftline.report.tables.comparison import comparison_tables
from driftline.report.tables.ranking import ranking_tables
from driftline.report.tables.render import render

from ..conftest import adapted

Make = Callable[..., Record]


def compared(record: Record, metric: str) -> dict[tuple[str, str], Comparison]:
    (group,) = groups(record)
    (column,) = [column for column in headline_columns(group) if (column.metric, column.stat) == (metric, "mean")]
    return {(pair.first, pair.second): pair for pair in compare_pairs(group, column)}


def test_differences_are_of_common_seeds_and_the_better_mean_comes_first(make_record: Make) -> None:
    record = make_record({"erm": [0.50, 0.60, 0.70, 0.90], "ft": [0.60, 0.71, 0.79]})
    found = compared(record, "ood")["ft", "erm"]
    expected = stats.ttest_rel([0.60, 0.71, 0.79], [0.50, 0.60, 0.70])
    assert found.difference.value == pytest.approx(0.1)
    assert (found.difference.low, found.difference.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert (found.difference.n, found.over, found.p) == (3, "seeds", pytest.approx(expected.pvalue))
    assert found.p_sign_flip == 0.25


def test_all_pairs_are_corrected_together(make_record: Make) -> None:
    rng = np.random.default_rng(0)
    values = {name: (0.3 + 0.1 * k + 0.05 * rng.random(5)).tolist() for k, name in enumerate("abcd")}
    found = compared(make_record(values), "ood")
    assert list(found) == list(combinations("dcba", 2))
    raw = {pair: stats.ttest_rel(values[pair[0]], values[pair[1]]).pvalue for pair in found}
    adjusted = stats.false_discovery_control  # scipy has no Holm: this one must not be what we do
    ordered, least = sorted(raw, key=lambda pair: raw[pair]), 0.0
    for k, pair in enumerate(ordered):
        least = max(least, min(1.0, (6 - k) * raw[pair]))
        assert found[pair].p == pytest.approx(least)
    assert not np.allclose([found[pair].p for pair in raw], adjusted(list(raw.values())))


def test_two_seeds_have_an_interval_and_no_p(make_record: Make) -> None:
    found = compared(make_record({"a": [0.5, 0.6], "b": [0.4, 0.3]}), "ood")["a", "b"]
    assert (found.difference.n, found.difference.low, found.difference.high) == (2, -1.0, 1.0)  # +-127 points, cut
    assert math.isnan(found.p)
    assert math.isnan(found.p_sign_flip)


CURVES = {"frozen": [0.5, 0.4] * 20, "tent": [0.7, 0.6] * 10 + [0.4, 0.3] * 10}


def test_one_seed_is_compared_along_its_stream_in_blocks(tmp_path: Path) -> None:
    """tent leads by .2 in the first half and trails by .1 in the second: single windows would call that a lead."""
    record = Record([adapted(tmp_path, label, 0, curve) for label, curve in CURVES.items()])
    found = compared(record, "stream-accuracy")["tent", "frozen"]
    apart = np.array(CURVES["tent"]) - CURVES["frozen"]
    assert (found.difference.value, found.difference.n, found.over) == (pytest.approx(0.05), 40, "times")
    assert stats.ttest_1samp(apart, 0).pvalue < 0.05
    assert found.p > 0.2
    assert found.difference.low < -0.02
    assert math.isnan(found.p_sign_flip)
    text = render(comparison_tables(record), "md")
    assert "| tent | frozen | 5.0 |" in text
    assert "40 times" in text
    assert "about this one stream" in text


def test_a_lead_that_never_changes_is_certain_and_few_times_say_nothing(tmp_path: Path) -> None:
    steady = {"frozen": CURVES["frozen"], "bn": [value + 0.1 for value in CURVES["frozen"]]}
    record = Record([adapted(tmp_path / "long", label, 0, curve) for label, curve in steady.items()])
    found = compared(record, "stream-accuracy")["bn", "frozen"]
    assert (found.difference.low, found.difference.high) == pytest.approx((0.1, 0.1))
    assert found.p == pytest.approx(1 / 10_001)
    short = Record([adapted(tmp_path / "short", label, 0, curve[:6]) for label, curve in steady.items()])
    found = compared(short, "stream-accuracy")["bn", "frozen"]
    assert (found.difference.n, found.over) == (1, "seeds")
    assert np.isnan([found.difference.low, found.p]).all()
    assert "No pair can be tested" in render(comparison_tables(short), "md")


def test_one_method_cannot_be_compared(make_record: Make) -> None:
    with pytest.raises(UserError, match="no two methods to compare"):
        comparison_tables(make_record({"erm": [0.5, 0.6]}))
    with pytest.raises(UserError, match=r"no format 'pdf'"):
        render([], "pdf")


def test_ranks_by_hand_with_what_is_left_out() -> None:
    """c is missing in y; z has no seed that a and b share; alone is one method. a: .5 < .6 but .9 > .4."""
    scores = {
        "x": {"a": {0: 0.5, 1: 0.9}, "b": {0: 0.6}, "c": {0: 0.1}},
        "y": {"a": {0: 0.9}, "b": {0: 0.4}},
        "z": {"a": {0: 0.9}, "b": {1: 0.4}},
        "w": {"a": {0: 0.9}, "b": {0: 0.9}},
        "alone": {"a": {0: 0.1}},
    }
    found = rank(scores)
    assert found is not None
    assert (found.methods, found.seeds, found.missing) == (["a", "b"], {"x": [0], "y": [0], "w": [0]}, ["c"])
    assert found.means.tolist() == [[0.5, 0.6], [0.9, 0.4], [0.9, 0.9]]  # of a in x, seed 1 does not count
    assert found.without_seed == ["z"]
    assert rank({"x": scores["x"]}) is None
    assert rank({"x": {"a": {0: 1.0}, "b": {0: 0.5}}, "y": {"c": {0: 1.0}, "d": {0: 0.5}}}) is None


def test_ranks_over_datasets_as_scipy_has_them(make_record: Make) -> None:
    rng = np.random.default_rng(1)
    runs, means = [], []
    for name in ("one", "two", "three", "four"):
        values = {method: rng.random(2).round(1).tolist() for method in ("a", "b", "c")}
        means.append([np.mean(by_seed) for by_seed in values.values()])
        changes = {"data__name": name, "run__data": {"name": name, "settings": {}}}
        runs += make_record({**values, "oracle": [1.0, 1.0]}, **changes).runs
    sheet = next(sheet for sheet in ranking_tables(Record(runs)) if sheet.records[0]["metric"] == "ood")
    expected = stats.friedmanchisquare(*np.array(means).T)
    ranked = dict(zip("abc", stats.rankdata(-np.array(means).round(9), axis=1).mean(axis=0), strict=True))
    assert {row["method"]: row["rank"] for row in sheet.records} == pytest.approx(ranked)  # without the oracle
    assert {(row["n"], row["seeds"]) for row in sheet.records} == {(4, 2)}
    assert sheet.records[0]["friedman"] == pytest.approx(expected.statistic)
    assert sheet.records[0]["p"] == pytest.approx(expected.pvalue)
    assert "(4 dataset(s))" in " ".join(sheet.notes)


def test_ranks_take_two_settings(make_record: Make) -> None:
    with pytest.raises(UserError, match="two methods that were run in two settings"):
        ranking_tables(make_record({"a": [0.5], "b": [0.6]}))
