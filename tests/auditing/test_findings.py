"""Every sentence about aging is printed if its test has passed, and not otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.aging import Aging
from driftline.auditing.change_date import ChangeDate
from driftline.auditing.checks import check_table
from driftline.auditing.difference_tests import Course, OddPeriod
from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import findings
from driftline.auditing.frame import read_frame
from driftline.auditing.label_shift import shift_between
from driftline.auditing.metric import CLASS_METRICS
from driftline.auditing.order_test import Kernel, OrderTest
from driftline.auditing.shape import Cut, Shape
from driftline.auditing.sizes import Sizes
from driftline.auditing.verdict import PairTests, Verdict
from driftline.auditing.wording import PeriodNames

FLAT = Estimate(0.8, 0.79, 0.81, 100, "answers")
NAMES = PeriodNames(tuple(f"2024-{month:02d}" for month in range(1, 13)), "month")
LOSS = Estimate(0.091, 0.082, 0.1)
SIZES = Sizes(CLASS_METRICS["accuracy"], FLAT, FLAT, FLAT, FLAT, LOSS, (LOSS,), FLAT, FLAT, FLAT, FLAT)
DATE = ChangeDate(*(np.datetime64(day) for day in ("2024-05-14", "2024-05-12", "2024-05-16")))


def order(p: float, family: Any = "abrupt", cycle: int = 0) -> OrderTest:
    return OrderTest(p, family, Kernel(family, 2, cycle=cycle), 0.0005)


def verdict(**more: Any) -> Verdict:
    calm = PairTests(order(0.41), 0.5)
    given: dict[str, Any] = {
        "recalibrated": calm,
        "raw": calm,
        "shifted": calm,
        "older_behind": 0.1,
        "newer_behind": 0.09,
        "odd": OddPeriod(3, 0.7),
        "others_differ": 0.5,
        "course": Course(0.5, -0.1, None, 0.78, 0.66),
        "least_course": 0.01,
        "has_skill": True,
        "higher_is_better": True,
    }
    return Verdict(**{**given, **more})


def aging(verdict: Verdict, **more: Any) -> Aging:
    given: dict[str, Any] = {
        "cause_z": 9.0,
        "inputs_moved": True,
        "loss_since": (LOSS,) * 2,
        "loss_per_period": Estimate(0.012, 0.01, 0.014),
    }
    return Aging(verdict, SIZES, NAMES.names, 1, "months", 95, **{**given, **more})


STRONG = PairTests(order(0.002), 0.0005)


def text(verdict: Verdict, **more: Any) -> str:
    return " ".join(findings(aging(verdict, **more), NAMES))


def aged(shape: Shape, dates: tuple[ChangeDate, ...] = ()) -> Verdict:
    return verdict(recalibrated=STRONG, shape=shape, dates=dates)


SMALL = replace(SIZES, staleness=Estimate(0.001, -0.01, 0.012))


def test_nothing() -> None:
    output = " ".join(findings(replace(aging(verdict()), sizes=SMALL), NAMES))
    assert "Nothing in this table shows that models age" in output
    assert "(p = 0.41)" in output
    assert "would have noticed a loss of" in output
    assert "harder" not in output


def test_a_loss_or_an_order_without_the_other_tests_is_not_certain() -> None:
    assert "It is not certain that models age (order of periods p = 0.41" in text(verdict()), "old models are behind"
    ordered = replace(aging(verdict(recalibrated=PairTests(order(0.03), 0.5))), sizes=SMALL)
    assert "It is not certain that models age (order of periods p = 0.03" in " ".join(findings(ordered, NAMES))


def test_no_skill_no_other_verdict() -> None:
    output = text(replace(aged(Shape("uncertain")), has_skill=False))
    assert output.startswith("Models of one period (95 rows) are not surely better than a constant answer")
    assert "changes" not in output


def test_an_abrupt_change_has_its_date_and_loss() -> None:
    output = text(aged(Shape("abrupt", cuts=(Cut(5),)), (DATE,)), loss_since=(LOSS,))
    assert (
        "on 14 May 2024 (between 12 May 2024 and 16 May 2024) the relation between inputs and target changed" in output
    )
    assert "an older model loses 9.1 points [8.2, 10.0]" in output


def test_other_shapes() -> None:
    temporary = text(aged(Shape("temporary", cuts=(Cut(5), Cut(8))), (DATE, DATE)))
    assert "changed for a time, from 14 May 2024" in temporary
    gradual = text(aged(Shape("gradual", start=0, end=11)))
    assert "changes gradually, from Jan 2024 to Dec 2024" in gradual
    assert "loses 1.2 points [1.0, 1.4] per month of age" in gradual
    recurring = text(aged(Shape("recurring", cycle=4, further=order(0.001))))
    assert "in a cycle of 4 months" in recurring
    assert "out of season" in recurring
    assert "Besides, there is a further change (p = 0.001)" in recurring
    uncertain = text(aged(Shape("uncertain")))
    assert "12 periods do not show in which shape" in uncertain
    cycle = text(
        aged(Shape("abrupt", cuts=(Cut(5),), further=order(0.004, "recurring", 3)), (DATE,)), loss_since=(LOSS,)
    )
    assert "Besides, there is a cycle of 3 months (p = 0.004)" in cycle


def test_new_inputs_are_not_a_changed_relation() -> None:
    output = text(aged(Shape("gradual", start=0, end=11)), cause_z=0.8)
    assert "because later inputs are new" in output
    assert "relation" not in output
    still = text(aged(Shape("gradual", start=0, end=11)), cause_z=0.8, inputs_moved=False)
    assert "the relation between inputs and target changes" in still, "no input moved, so something else did"


def test_each_part_of_aging_is_needed() -> None:
    shape = Shape("gradual", start=0, end=11)
    for part in (
        {"recalibrated": PairTests(order(0.06), 0.0005)},
        {"recalibrated": PairTests(order(0.002), 0.06)},
        {"recalibrated": STRONG, "older_behind": 0.04},
        {"recalibrated": STRONG, "newer_behind": -0.1},
        {"recalibrated": PairTests(None, 0.0005)},
    ):
        assert not verdict(**{"shape": shape, **part}).aged
    assert verdict(recalibrated=STRONG, shape=shape).aged


def test_miscalibration() -> None:
    moved = verdict(raw=STRONG, shape=Shape("gradual", start=0, end=11))
    output = text(moved, base_rates=(0.3, 0.7), base_rate_class="yes")
    assert "The share of 'yes' moved from 30% to 70%" in output
    assert output.endswith("scores are off; a changed relation between inputs and target was not found.")
    sure = text(replace(moved, shifted=STRONG))
    assert "The probabilities of old models are off in later periods" in sure
    assert "Level or scale of the target moved" in text(moved, is_number=True)
    new = text(replace(moved, recalibrated=STRONG, newer_behind=0.01))
    assert "later rows hold something new" in new
    noisier = text(replace(moved, recalibrated=STRONG, older_behind=0.01))
    assert "later rows carry less information" in noisier
    assert "was not found" not in new + noisier, "the tests of the relation found something"


def test_unordered_and_odd_periods() -> None:
    assert "differ, but not in the order of time" in text(verdict(recalibrated=PairTests(order(0.4), 0.001)))
    assert "unlike" not in text(verdict(odd=OddPeriod(3, 0.005)))
    odd = text(verdict(odd=OddPeriod(3, 0.001)))
    assert "Apr 2024 is unlike all others (p = 0.001)" in odd
    assert "too recent" not in odd
    several = text(verdict(odd=OddPeriod(3, 0.001), others_differ=0.005))
    assert "unlike all others" not in several, "the others differ as well"
    assert "Periods differ, but not in the order of time" in several
    assert "too recent to distinguish from a single odd period" in text(verdict(odd=OddPeriod(11, 0.001)))


def test_order_alone_and_too_few_periods() -> None:
    ordered = aging(verdict(recalibrated=PairTests(order(0.002), 0.5)))
    small = " ".join(findings(replace(ordered, sizes=SMALL), NAMES))
    assert "more alike (p = 0.002), at a cost too small to show" in small
    assert "too small" not in " ".join(findings(ordered, NAMES))
    few = verdict(recalibrated=PairTests(None, 0.5))
    assert "too few to tell order from chance" in text(few)


@pytest.mark.parametrize(("change", "word"), [(-0.12, "harder"), (0.12, "easier")])
def test_difficulty_is_a_finding_of_its_own(change: float, word: str) -> None:
    course = Course(0.001, change, None, 0.78, 0.78 + change)
    output = " ".join(findings(replace(aging(verdict(course=course)), sizes=SMALL), NAMES))
    assert f"The data got {word} (p = 0.001): a new model reaches accuracy 78.0% in the first" in output
    assert ("newer rows may not help" in output) == (word == "harder")
    assert "may not help" not in text(verdict(course=course)), "old models are surely behind"
    both = text(replace(aged(Shape("uncertain")), course=course))
    assert f"The data got {word}" in both
    assert "may not help" not in both
    assert "got" not in text(verdict(course=Course(0.03, change, None, 0.78, 0.66)))
    assert "got" not in text(verdict(course=Course(0.001, change / 100, None, 0.78, 0.78)))


def test_without_probabilities_the_answer_says_what_is_open() -> None:
    assert "gives no probabilities" in text(aged(Shape("uncertain")), has_probabilities=False)


def test_warnings_about_a_table() -> None:
    n = 200
    frame = pd.DataFrame(
        {
            "when": np.arange(n) // 2,
            "x": np.repeat(np.random.default_rng(0).normal(size=n // 2), 2),
            "same": 1.0,
            "nothing": np.full(n, np.nan),
            "number": np.arange(n),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(np.arange(n) * 37 % 101, unit="D"),
            "y": ["yes"] * 10 + ["no"] * 190,
        }
    )
    output = " | ".join(check_table(read_frame(frame, time="when", target="y")))
    assert "95.0% of the rows are 'no'" in output
    assert "'number' identifies the time or the row" in output
    assert "'same' is constant" in output
    assert "'nothing' is empty" in output
    assert "'born' is a date" in output
    assert "away" not in output
    known = frame[["when", "x", "y"]].assign(code=np.where(frame["y"] == "yes", 7.0, 3.0), twice=np.arange(n) // 50)
    leaks = " | ".join(check_table(read_frame(known, time="when", target="y")))
    assert "'code' gives the target 'y' away; check that it is known before the target" in leaks
    rare = known.assign(code=np.where(np.arange(n) % 50 == 0, np.arange(n), np.nan))
    assert "'code'" not in " | ".join(check_table(read_frame(rare, time="when", target="y"))), "four rows are chance"
    words = frame[["when", "x", "y"]].assign(note=[f"order {k} came late" for k in range(n)])
    assert "'note'" not in " | ".join(check_table(read_frame(words, time="when", target="y"))), "texts differ anyway"
    copies = read_frame(frame[["when", "x", "y"]], time="when", target="y")
    assert "100 of 200 rows are copies" in " | ".join(check_table(copies))
    other = frame.assign(y=np.resize(["yes", "no"], n))
    alike = read_frame(other[["when", "x", "y"]], time="when", target="y")
    assert "copies" not in " | ".join(check_table(alike)), (
        "rows with the same features and another target are no copies"
    )


def test_a_fitted_share_is_one() -> None:
    random = np.random.default_rng(0)
    rates = [0.3, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0]
    ending = [np.eye(2)[(random.random(200) < rate).astype(int)] for rate in rates]
    found = shift_between(ending, ["no", "yes"], random)
    assert found.significant
    assert 0 <= found.last < 0.05


def test_label_shift_by_blocks() -> None:
    random = np.random.default_rng(0)
    rates = np.linspace(0.3, 0.7, 10)
    moving = [np.eye(2)[(random.random(200) < rate).astype(int)] for rate in rates]
    found = shift_between(moving, ["no", "yes"], random)
    assert found.significant
    assert found.moved == "yes"
    assert (found.first, found.last) == pytest.approx((0.3, 0.7), abs=0.08)
    still = [np.eye(2)[(random.random(200) < 0.3).astype(int)] for _ in rates]
    assert not shift_between(still, ["no", "yes"], random).significant
    tiny = [np.eye(2)[(np.arange(4000) % 1000 < 300 + k).astype(int)] for k in range(10)]
    assert not shift_between(tiny, ["no", "yes"], random).significant, "less than two points"
