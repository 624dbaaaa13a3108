"""Intervals end at the possible values of their metric, and contain the number that they belong to."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline.record.run import Record
from driftline.report.analysis.gains import gains
from driftline.report.analysis.groups import groups
from driftline.report.figures.base import draw

from ..conftest import summary_rows, write_run


@pytest.mark.parametrize(("metric", "highest"), [("tas", 1.0), ("tas-unclipped", 1.25 + 12.706 * 0.05)])
def test_an_unclipped_ratio_above_1_is_within_its_interval_and_its_axis(
    tmp_path: Path, metric: str, highest: float
) -> None:
    value = 0.9 if metric == "tas" else 1.25
    each = [[(metric, "each", t, None, value + noise, 0, 2, 9, "examples") for t in "ab"] for noise in (-0.05, 0.05)]
    frame, chart = draw(
        "curves", Record([write_run(tmp_path, "erm", k, rows) for k, rows in enumerate(each)]), metric=metric
    )
    assert frame["high"].tolist() == pytest.approx([highest] * 2, abs=1e-3)
    assert frame["value"].between(frame["low"], frame["high"]).all()
    [low, high] = chart.to_dict()["concat"][0]["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low <= frame["low"].min()
    assert high >= frame["high"].max()
    assert metric != "tas" or high == 1


@pytest.mark.parametrize(("metric", "unit", "low", "high"), [("tas", 0.1, -0.4937, 1.0), ("sh", 1.0, -4.937, 14.937)])
def test_a_gain_of_a_share_is_at_most_1_and_one_in_periods_may_be_more(
    tmp_path: Path, metric: str, unit: float, low: float, high: float
) -> None:
    values = {"frozen": [0.0, 0.0, 0.0], "erm": [unit, 5 * unit, 9 * unit]}  # 5 -+ 4.303 * 4 / sqrt(3) units
    [group] = groups(
        Record(
            write_run(tmp_path, label, seed, summary_rows({(metric, "mean"): value}))
            for label, by_seed in values.items()
            for seed, value in enumerate(by_seed)
        )
    )
    gain = gains(group, "frozen", metric, "mean")["erm"]
    assert (gain.value, gain.low, gain.high) == pytest.approx((5 * unit, low, high), abs=1e-3)
