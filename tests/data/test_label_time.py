"""Labels as owners have them: each becomes known at a time of its own, and no learner sees it before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline import Answers, Learner
from driftline.data.formats.label_time import delayed, parse_label_times
from driftline.errors import UserError


@dataclass
class Latest(Learner):
    """Answer with the latest label: right wherever labels of the same period are revealed too early."""

    def prepare(self, model: Any, task: Any, upstream: Any = None) -> None:
        super().prepare(model, task, upstream)
        self.last = 0

    def predict(self, x: Any) -> Answers:
        return Answers(np.full(len(x), self.last))

    def learn(self, x: Any, y: Any) -> None:
        self.last = int(y[-1])


def alternating(periods: int = 6, rows: int = 20) -> pd.DataFrame:
    """A target that is constant within a month and changes from month to month; labels are known a month later."""
    month = np.repeat(np.arange(periods), rows)
    day = np.tile(np.linspace(0, 27, rows).astype(int), periods)
    when = pd.to_datetime("2024-01-01") + pd.to_timedelta(30 * month + day, unit="D")
    frame = pd.DataFrame({"when": when, "known": when + pd.Timedelta(days=30), "y": np.where(month % 2, "b", "a")})
    return frame.assign(noise=np.random.default_rng(0).normal(size=len(frame)), row=np.arange(len(frame)) // rows)


def scores(frame: pd.DataFrame, **options: Any) -> pd.Series:
    data = {"name": "table", "time": "when", "target": "y", "features": ["noise"], **options}
    record = driftline.run(
        benchmark="timeline",
        data={**data, "name": frame},
        model="naive-bayes",
        methods=[Latest],
        seeds=1,
        timeline={"period": "20 rows", "resamples": 5, "holdout": 0.2},
        cache=False,
    )
    table = record.scores
    return table[table["stat"] == "mean"].set_index("metric")["value"]


def test_a_learner_that_would_profit_from_early_labels_does_not_get_them() -> None:
    frame = alternating()
    assert scores(frame)["id"] == 1.0  # the labels of a period are known at its end, and it has one answer
    assert scores(frame, known="known")["id"] == 0.0  # the latest known label is that of the period before
    assert scores(frame, known="known")["ood"] > scores(frame)["ood"]


def test_labels_without_a_time_are_never_revealed_and_counted() -> None:
    when = np.array(["2024-01-01", "2024-01-02"], "datetime64[us]")
    known, notes = parse_label_times(pd.Series(["2023-12-31", None], name="known"), when)
    assert np.isnat(known).tolist() == [False, True]
    assert notes == [
        "1 labels have no 'known' and are never revealed",
        "1 labels were known before the time of their rows",
    ]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("knwon", "no column of the frame 'knwon'. Did you mean 'known'"),
        ("when", "the frame: time, target, id, known and cluster must be different columns"),
        ("row", "the time column has dates and label time column 'row' has numbers: use one clock"),
    ],
)
def test_bad_label_times_get_one_sentence(column: str, sentence: str) -> None:
    from driftline.data.table import from_frame

    with pytest.raises(UserError) as error:
        from_frame("the frame", alternating())((), time="when", target="y", known=column)
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize("delay", ["60 moons", "d", "-3d"])
def test_a_bad_delay_gets_one_sentence(delay: str) -> None:
    with pytest.raises(UserError, match="give a number of periods, or a time such as 12h, 60d or 8w"):
        delayed(np.array(["2024-01-01"], "datetime64[us]"), delay)
    with pytest.raises(UserError, match="the time column has numbers"):
        delayed(np.arange(3), "3d")


@pytest.mark.parametrize(
    ("benchmark", "changes", "sentence"),
    [
        ("open-world", {}, "open-world does not run on the clock of the data: leave out data.known"),
        ("timeline", {"reveal": {"delay": 1}}, "data.known says when labels arrive: leave out reveal.delay"),
    ],
)
def test_label_times_are_refused_where_they_have_no_meaning(
    benchmark: str, changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    alternating().to_csv(tmp_path / "t.csv", index=False)
    data = {"name": "table", "path": str(tmp_path / "t.csv"), "time": "when", "target": "y", "known": "known"}
    spec = {"benchmark": benchmark, "data": data, "model": "naive-bayes", "methods": ["erm"], "seeds": 1, **changes}
    with pytest.raises(UserError, match=sentence):
        driftline.run(spec, runs=tmp_path / "runs")


def test_upstream_training_uses_only_labels_that_are_known() -> None:
    from driftline.benchmarks.timeline.benchmark import Timeline
    from driftline.data.table import from_frame
    from driftline.seeds import Seed

    frame = alternating().assign(known=lambda table: table["when"] + pd.Timedelta(days=10))
    dataset = from_frame("table", frame)((), time="when", target="y", known="known")
    options = Timeline.options(period="20 rows", upstream=2)
    upstream = Timeline().build_scenario(dataset, options, Seed(0)).upstream
    assert upstream is not None
    assert upstream.known is not None
    assert upstream.known.max() <= dataset.samples.time[39]  # type: ignore[index]
    assert 20 < len(upstream) < 36
    late = from_frame("table", alternating())((), time="when", target="y", known="known")
    with pytest.raises(UserError, match=r"no label of the first 1 period\(s\) is known"):
        Timeline().build_scenario(late, Timeline.options(period="20 rows", upstream=1), Seed(0))


@pytest.mark.parametrize("delay", ["36601d", "1000000000d", "9" * 20 + "d"])
def test_a_delay_that_would_overflow_the_clock_is_refused(delay: str) -> None:
    """Added to a date in microseconds, 10^9 days would be in the past: every label would be early."""
    with pytest.raises(UserError, match=f"delay '{delay}' is longer than a century"):
        delayed(np.array(["2024-01-01"], "datetime64[us]"), delay)


def test_delays_in_weeks_hours_and_minutes() -> None:
    when = np.array(["2024-01-01"], "datetime64[us]")
    hours = [(delayed(when, text) - when)[0] / np.timedelta64(1, "h") for text in ("2w", "36 h", "90min")]
    assert hours == [336, 36, 1.5]
