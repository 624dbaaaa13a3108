"""Tables of scores: columns that a row lacks are missing values, in every version of pandas."""

from __future__ import annotations

from driftline.benchmarks.base import scores_frame


def test_a_text_that_a_row_lacks_is_missing() -> None:
    row = {
        "metric": "id",
        "stat": "each",
        "time": "1",
        "value": 0.5,
        "low": 0.4,
        "high": 0.6,
        "n": 3,
        "unit": "examples",
    }
    frame = scores_frame([row, {**row, "tau": "2", "censored": True}])
    assert frame["tau"].isna().tolist() == [True, False]
    assert frame["censored"].tolist() == [False, True]
    assert (frame["n"].dtype, frame["censored"].dtype) == ("int64", "bool")
