"""Tables of scores."""

import math

from driftline.benchmarks.base import scores_frame


def test_no_value_lies_outside_its_own_interval():
    rows = [
        {"metric": "id", "stat": "mean", "value": 1.0, "low": 0.9, "high": 0.97, "n": 6, "unit": "times"},
        {"metric": "ood", "stat": "minimum", "value": 0.5, "low": 0.6, "high": 0.7, "n": 6, "unit": "times"},
        {"metric": "tas", "stat": "mean", "value": 0.8, "low": 0.7, "high": 0.9, "n": 6, "unit": "times"},
        {"metric": "sh", "stat": "mean", "value": 2.0, "n": 6, "unit": "times"},
    ]
    frame = scores_frame(rows)
    assert frame["low"].tolist()[:3] == [0.9, 0.5, 0.7]
    assert frame["high"].tolist()[:3] == [1.0, 0.7, 0.9]
    assert math.isnan(frame["low"][3])
    assert math.isnan(frame["high"][3])
