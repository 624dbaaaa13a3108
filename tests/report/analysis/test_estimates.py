"""Intervals end at the possible values of their metric, and contain the number that they belong to."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline.record.run import Record
from driftline.report.figures.base import draw

from ..conftest import write_run


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
