"""Policies: the replay gives the numbers of a plain loop, alarms train on rows since, and the choice is bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from driftline.auditing import alarms
from driftline.auditing.alarms import ErrorRate, held_out_errors, replay_alarms, start_of_replay
from driftline.auditing.answers import headline
from driftline.auditing.detectors import changes, match_alarms
from driftline.auditing.estimate import Estimate
from driftline.auditing.examples import table
from driftline.auditing.frame import read_frame
from driftline.auditing.metric import CLASS_METRICS
from driftline.auditing.policies import PolicyResult, TrainingNoise, compare_policies, gain_parts
from driftline.auditing.recommendation import Costs, recommend
from driftline.auditing.replay import recalibrated_replay, same_phase, schedule_replay, schedules, train_and_answer
from driftline.auditing.shape import Cut, Shape
from driftline.auditing.table import AuditTable, Limits, periods_until, prepare

SIZE, PERIODS = 60, 10
NOISE = TrainingNoise(0.0, SIZE)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return table("concept", rows=SIZE * PERIODS)


def audited(frame: pd.DataFrame, **more: Any) -> AuditTable:
    model = DecisionTreeClassifier(max_depth=3, random_state=0)
    read = read_frame(frame, time="when", target="y", features=["a", "b"])
    return prepare(read, model, f"{SIZE} rows", more.get("delay", 0), 0, Limits(), more.get("deployed"))


def replayed(audit_table: AuditTable, names: tuple[str, ...]) -> dict[str, Any]:
    replays = {}
    for name in names:
        plan = schedules(audit_table)[name]
        fitted: dict[Any, Any] = {}
        for k, training in plan.items():
            fitted.setdefault(training, {}).update(train_and_answer(audit_table, training, [k]))
        replays[name] = schedule_replay(audit_table, plan, fitted)
    return replays


PLANS = {
    "never": lambda k, d: range(3),
    "window-3": lambda k, d: range(k - 3 - d, k - d),
    "all-history": lambda k, d: range(k - d),
    "every-4": lambda k, d: range((k - 3 - d) // 4 * 4, (k - 3 - d) // 4 * 4 + 3),
    "every-2-all": lambda k, d: range((k - 3 - d) // 2 * 2 + 3),
}


@pytest.mark.parametrize("delay", [0, 2])
def test_a_plain_loop_gives_the_same_numbers(frame: pd.DataFrame, delay: int) -> None:
    audit_table = audited(frame, delay=delay)
    replays = replayed(audit_table, tuple(PLANS))
    results = {r.policy: r for r in compare_policies(audit_table, [CLASS_METRICS["accuracy"]], replays, NOISE)}
    x, y = frame[["a", "b"]].to_numpy(), frame["y"].to_numpy()
    rows = [np.arange(k * SIZE, (k + 1) * SIZE) for k in range(PERIODS)]
    for name, periods in PLANS.items():
        expected = []
        for k in range(3 + delay, PERIODS):
            used = np.concatenate([rows[j] for j in periods(k, delay)])
            model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(x[used], y[used])
            expected.append(float((model.predict(x[rows[k]]) == y[rows[k]]).mean()))
        assert [part.value for part in results[name].by_period] == pytest.approx(expected), name
        assert results[name].quality.value == pytest.approx(np.mean(expected))
    assert results["never"].retrainings == 0
    assert results["window-3"].retrainings == PERIODS - 4 - delay
    assert results["all-history"].rows == SIZE * sum(range(3, PERIODS - delay))


def test_the_gain_has_two_parts(frame: pd.DataFrame) -> None:
    audit_table = audited(frame)
    replays = replayed(audit_table, ("never", "window-3", "all-history"))
    metric = CLASS_METRICS["accuracy"]
    results = {r.policy: r.quality.value for r in compare_policies(audit_table, [metric], replays, NOISE)}
    newer, more = gain_parts(audit_table, metric, replays, NOISE)
    assert newer.value == pytest.approx(results["window-3"] - results["never"])
    assert more.value == pytest.approx(results["all-history"] - results["window-3"])
    wide = gain_parts(audit_table, metric, replays, TrainingNoise(0.01, SIZE))[0]
    assert wide.high - wide.low > newer.high - newer.low, "training noise widens the interval"
    noisy = compare_policies(audit_table, [metric], replays, TrainingNoise(9.0, SIZE))
    assert {(one.quality.low, one.quality.high) for one in noisy if one.policy != "trivial"} == {(0, 1)}


def test_an_alarm_trains_on_the_rows_since(frame: pd.DataFrame) -> None:
    audit_table = audited(frame)
    done = replay_alarms(audit_table, ErrorRate, start_of_replay(audit_table))
    assert done.alarms == (5,), "the rule is inverted from period 5 on"
    assert done.trainings[:4] == (3, 6, 7, 8), "again each period until three periods are filled"
    model = DecisionTreeClassifier(max_depth=3, random_state=0)
    since = frame.iloc[5 * SIZE : 7 * SIZE]
    model.fit(since[["a", "b"]].to_numpy(), since["y"])
    seventh = frame.iloc[7 * SIZE : 8 * SIZE]
    labels = np.array(["no", "yes"])
    assert (labels[done.answers[7].prediction] == model.predict(seventh[["a", "b"]].to_numpy())).all()


def test_numbers_are_recalibrated_by_a_line() -> None:
    random = np.random.default_rng(0)
    n = SIZE * PERIODS
    x, late = random.normal(size=n), np.arange(n) >= 5 * SIZE
    frame = pd.DataFrame({"when": pd.date_range("2024", periods=n, freq="h"), "x": x, "y": x + 7.0 * late})
    given = prepare(read_frame(frame, time="when", target="y"), LinearRegression(), f"{SIZE} rows", 0, 0, Limits(), 3)
    never = replayed(given, ("never",))["never"]
    errors = {
        k: float(np.abs(answers.prediction - given.periods[k].y).mean())
        for k, answers in recalibrated_replay(given, never).answers.items()
    }
    assert errors[4] == pytest.approx(0, abs=1e-9)
    assert errors[5] == pytest.approx(7), "the shift is not known yet"
    assert (errors[8], errors[9]) == pytest.approx((0, 0), abs=1e-9), "three periods of the new level are known"


def test_which_model_is_in_production() -> None:
    frame = table(rows=600)
    assert audited(frame, deployed=5).first_replayed == 5
    starts = audited(frame).starts
    assert periods_until(starts, str(starts[4])) == 5
    assert periods_until(np.array([1.0, 2, 3]), "2.5") == 2


def test_the_same_season_of_earlier_cycles(frame: pd.DataFrame) -> None:
    plan = same_phase(audited(frame), cycle=4)
    assert plan[3].periods == (0, 1, 2), "before there is one, the start"
    assert plan[9].periods == (1, 5)


def policy(
    name: str, quality: float, behind: tuple[float, float], retrainings: int, gained: float = 0.1
) -> PolicyResult:
    value, high = behind
    estimate = Estimate(value, 2 * value - high, high)
    flat = Estimate(quality, quality, quality, 1000, "answers")
    gain = Estimate(gained, gained - 0.01, gained + 0.01)
    return PolicyResult(name, flat, estimate, gain, flat, retrainings, (), 100, 1 - quality, (), (), (), {})


class Aged:
    """A verdict of which only the findings matter."""

    has_skill, aged, miscalibrated = True, True, False


class Calm(Aged):
    aged = False


class Off(Calm):
    miscalibrated = True


PARTS = (Estimate(0, 0, 0), Estimate(0, 0, 0))


def choose(results: list[PolicyResult], verdict: Any = Aged, costs: Costs | None = None) -> Any:
    return recommend(results, verdict(), CLASS_METRICS["accuracy"], costs or Costs(), PARTS, False)


def test_the_recommendation_is_bounded_by_estimate_and_interval() -> None:
    best = policy("window-3", 0.80, (0.0, 0.0), 9)
    near = policy("every-4", 0.795, (0.005, 0.02), 2)
    risky = policy("every-8", 0.795, (0.005, 0.09), 1)
    never = policy("never", 0.70, (0.10, 0.12), 0, gained=0.0)
    found = choose([best, near, risky, never, policy("trivial", 0.5, (0.3, 0.3), 0)])
    assert found.recommendation.policy == "every-4", "every-8 may be 9 points behind, a quarter of the gain is 2.5"
    assert found.recommendation.shortlist == ("window-3", "every-4")
    assert [r.policy for r in found.results if r.on_frontier] == ["window-3", "every-8", "never"]


def test_a_recommendation_is_never_surely_behind_by_more_than_half_a_point() -> None:
    best = policy("all-history", 0.80, (0.0, 0.0), 10, gained=0.22)
    never = policy("never", 0.58, (0.22, 0.24), 0, gained=0.0)
    surely = policy("every-2-all", 0.782, (0.018, 0.025), 5)  # within a tenth of the gain, at least 1.1 points behind
    assert choose([best, surely, never]).recommendation.policy == "all-history"
    perhaps = policy("every-2-all", 0.782, (0.018, 0.035), 5)  # 0.1 to 3.5 points behind
    assert choose([best, perhaps, never]).recommendation.policy == "every-2-all"


def test_nothing_is_retrained_without_aging_or_a_sure_gain() -> None:
    best = policy("all-history", 0.80, (0.0, 0.0), 9, gained=0.03)
    never = policy("never", 0.77, (0.03, 0.05), 0, gained=0.0)
    assert choose([best, never], Calm).recommendation.policy == "never"
    assert choose([best, never], Calm).recommendation.reason == "no-aging"
    unsure = replace(best, gained=Estimate(0.03, -0.01, 0.07))
    assert choose([unsure, never]).recommendation.reason == "not-sure"


def test_costs_decide() -> None:
    best = policy("window-3", 0.80, (0.0, 0.0), 9)
    never = policy("never", 0.70, (0.10, 0.12), 0, gained=0.0)
    cheap = choose([best, never], costs=Costs(error=1.0, retraining=5.0))
    assert cheap.recommendation.policy == "window-3"
    assert cheap["window-3"].cost == pytest.approx(1000 * (0.2 + 5 * 9 / 1000))
    assert choose([best, never], costs=Costs(error=1.0, retraining=50.0)).recommendation.policy == "never"


def test_costs_decide_about_recalibration_too() -> None:
    best = policy("window-3", 0.80, (0.0, 0.0), 9)
    repaired = policy("recalibrate", 0.79, (0.0, 0.03), 0, gained=0.09)
    never = policy("never", 0.70, (0.10, 0.12), 0, gained=0.0)
    assert choose([best, repaired, never], Off).recommendation.reason == "recalibrate"
    free = choose([best, repaired, never], Off, Costs(error=1.0, retraining=0.0))
    assert (free.recommendation.policy, free.recommendation.reason) == ("window-3", "cheapest")
    costly = choose([best, repaired, never], Aged, Costs(error=1.0, retraining=50.0))
    assert costly.recommendation.policy == "recalibrate"
    assert headline(costly) == "Recalibrate, do not retrain"


def test_detectors_are_judged_against_significant_changes() -> None:
    assert changes(None, 1) == []
    assert changes(Shape("abrupt", cuts=(Cut(10),)), 2) == [(5, 5)]
    assert changes(Shape("gradual", start=4, end=9), 1) == [(4, 9)]
    assert match_alarms([5, 6, 9], []) == ([], 3)
    assert match_alarms([4, 6, 7, 9], [(5, 5)]) == ([1], 2)
    assert match_alarms([4, 8], [(4, 9)]) == ([0], 0)


@pytest.mark.parametrize(("enough", "halves"), [(10_000, 2), (SIZE, 1)])
def test_held_out_errors_are_those_of_models_that_did_not_see_the_rows(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, enough: int, halves: int
) -> None:
    monkeypatch.setattr(alarms, "ENOUGH_FOR_ONE_HALF", enough)
    audit_table = audited(frame)
    rows, before = audit_table.periods[1], audit_table.periods[0]
    tested, errors, trained = held_out_errors(audit_table, rows, [before])
    half = np.arange(SIZE) * 10 // SIZE % 2
    expected = np.empty(SIZE)
    for k in (0, 1):
        seen = pd.concat([frame.iloc[before.id], frame.iloc[rows.id[half != k]]])
        model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(seen[["a", "b"]], seen["y"])
        unseen = frame.iloc[rows.id[half == k]]
        expected[half == k] = model.predict(unseen[["a", "b"]]) != unseen["y"]
    np.testing.assert_array_equal(tested, np.arange(SIZE) if halves == 2 else np.flatnonzero(half == 1))
    np.testing.assert_array_equal(errors, expected[tested])
    assert trained == halves * (SIZE + SIZE // 2)
