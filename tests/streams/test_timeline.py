from __future__ import annotations

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import periods
from driftline.streams.timeline import PeriodRange, period_labels
from driftline.testing import check_stream
from driftline.types import Samples


def samples(time: object, **columns: object) -> Samples:
    time = np.asarray(time)
    return Samples(np.arange(len(time), dtype=float)[:, None], np.arange(len(time)) % 2, time=time, **columns)


def dates(*days: str) -> np.ndarray:
    return np.array(days, dtype="datetime64[s]")


@pytest.mark.parametrize(
    ("period", "names"),
    [
        ("decade", ["2010s", "2010s", "2020s", "2020s"]),
        ("year", ["2019", "2019", "2020", "2020"]),
        ("quarter", ["2019-Q3", "2019-Q4", "2020-Q1", "2020-Q1"]),
        ("month", ["2019-09", "2019-12", "2020-01", "2020-03"]),
        ("week", ["2019-09-30", "2019-12-30", "2019-12-30", "2020-03-30"]),
        ("day", ["2019-09-30", "2019-12-31", "2020-01-01", "2020-03-31"]),
        ("3 rows", ["rows 1-3", "rows 1-3", "rows 1-3", "rows 4-6"]),
        ("3rows", ["rows 1-3", "rows 1-3", "rows 1-3", "rows 4-6"]),
        ("each", ["2019-09-30T00:00:00", "2019-12-31T23:59:59", "2020-01-01T00:00:00", "2020-03-31T12:00:00"]),
    ],
)
def test_calendars_are_cut_where_people_cut_them(period: str, names: list[str]) -> None:
    time = dates("2019-09-30", "2019-12-31T23:59:59", "2020-01-01", "2020-03-31T12:00:00")
    assert period_labels(time, period).tolist() == names


def test_whole_numbers_are_years_and_decades() -> None:
    assert period_labels(np.array([1899, 1900, 1909.0]), "decade").tolist() == ["1890s", "1900s", "1900s"]
    assert period_labels(np.array([1899, 1900]), "year").tolist() == ["1899", "1900"]
    for time, period in ((np.array([0.5, 1.5]), "year"), (np.array([1, 2]), "month"), (dates("2020-01-01"), "age")):
        with pytest.raises(UserError, match="period '"):
            period_labels(time, period)


def test_automatic_is_the_finest_cut_of_at_most_a_hundred() -> None:
    def count(time: np.ndarray) -> int:
        return len(np.unique(period_labels(time, "auto")))

    assert count(np.arange(100)) == 100
    assert count(np.arange(101)) == 17  # 6 rows each, the last one fewer
    days = np.datetime64("2020-01-01") + np.arange(90 * 24).astype("timedelta64[h]")
    assert count(days) == 90
    years = np.datetime64("2020-01-01") + np.arange(1000).astype("timedelta64[D]")
    assert period_labels(years, "auto")[0] == "2020-01"


@pytest.mark.parametrize(("n", "revealed"), [(10, 9), (11, 9), (19, 17), (20, 18), (100, 90), (1000, 900)])
def test_nine_tenths_rounded_down_are_shown(n: int, revealed: int) -> None:
    timeline = periods(samples([0] * n + [1] * n))
    assert [len(part) for part in timeline.revealed] == [revealed, revealed]
    assert [len(part) for part in timeline.held_out] == [n - revealed, n - revealed]


@pytest.mark.parametrize("holdout", [0.001, 0.5, 0.999])
def test_both_parts_have_at_least_one_sample(holdout: float) -> None:
    timeline = periods(samples([0] * 3 + [1] * 3), holdout=holdout, min_samples=3)
    assert all(len(part) >= 1 for part in (*timeline.revealed, *timeline.held_out))


def test_shown_and_held_out_are_disjoint_and_complete() -> None:
    timeline = periods(samples(np.repeat([3, 4, 5], 40)), holdout=0.25)
    for k in range(3):
        revealed, held_out = set(timeline.revealed[k].id.tolist()), set(timeline.held_out[k].id.tolist())
        assert not revealed & held_out
        assert revealed | held_out == set(range(40 * k, 40 * (k + 1)))
        assert set(timeline.all_samples(k).id.tolist()) == revealed | held_out
        assert sorted(revealed) == timeline.revealed[k].id.tolist()
    assert timeline.held_out[0].id.tolist() != (timeline.held_out[1].id - 40).tolist()


def test_a_mask_is_held_out_as_it_is_and_periods_without_both_parts_are_left_out() -> None:
    time = np.tile([4, 3, 5], 10)
    mask = (np.arange(30) % 6 == 1) | (time == 5)
    timeline = periods(samples(time), holdout=mask | (np.arange(30) == 0))
    assert (timeline.names, timeline.skipped) == (("3", "4"), {"5": 10})
    assert [part.id.tolist() for part in timeline.held_out] == [[1, 7, 13, 19, 25], [0]]
    assert [len(part) for part in timeline.revealed] == [5, 9]


def test_a_periods_split_depends_on_no_other_period() -> None:
    whole = periods(samples(np.repeat([3, 4, 5], 40), id=np.arange(120)), seed=Seed(1))
    fewer = periods(samples(np.repeat([4, 5, 6], [40, 40, 90]), id=np.arange(40, 210)), seed=Seed(1))
    assert whole.held_out[1].id.tolist() == fewer.held_out[0].id.tolist()
    assert whole.held_out[2].id.tolist() == fewer.held_out[1].id.tolist()
    other = periods(samples(np.repeat([3, 4, 5], 40)), seed=Seed(2))
    assert whole.held_out[1].id.tolist() != other.held_out[1].id.tolist()


def test_small_periods_are_left_out_and_named() -> None:
    timeline = periods(samples(np.repeat([1, 2, 3, 4], [10, 9, 30, 1])))
    assert timeline.names == ("1", "3")
    assert timeline.skipped == {"2": 9, "4": 1}
    assert [step.index for step in timeline] == [0, 1]
    assert timeline[-1].index == 1


def test_periods_are_in_time_order_not_in_the_order_of_their_names() -> None:
    assert periods(samples(np.repeat([8, 9, 10, 11], 10))).names == ("8", "9", "10", "11")
    shuffled = samples(np.tile([10, 9, 8], 10))
    timeline = periods(shuffled)
    assert timeline.names == ("8", "9", "10")
    assert set(timeline.all_samples(0).id % 3) == {2}


def test_change_needs_time_and_two_periods() -> None:
    with pytest.raises(UserError, match=r"leaves 1 period\(s\) of at least 10"):
        periods(samples([1] * 20 + [2] * 3))
    with pytest.raises(UserError, match="no time column"):
        periods(Samples(np.zeros((3, 1)), np.zeros(3)))


def test_a_range_of_periods_ends_where_it_should() -> None:
    """Steps are numbered from the first period of the range, and there is none after its last."""
    part = PeriodRange(periods(samples(np.repeat([1, 2, 3, 4], 10))), 1, 3)
    check_stream(part)
    assert [part[k].time for k in (0, 1, -1)] == ["2", "3", "3"]
    assert part[-1].index == 1


def test_samples_of_one_time_are_refused_with_the_way_to_give_times() -> None:
    few = Samples(x=np.zeros((40, 1)), y=np.zeros(40, int), time=np.zeros(40, int))
    with pytest.raises(
        UserError, match=r"all 40 samples have the time 0: give each its own.* timeline.period='4 rows'"
    ):
        periods(few)
    assert len(periods(few, "20 rows").names) == 2
