"""The verdict in words holds for what was found: another word and other rows where the finding differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.auditing import AuditResult
from driftline.auditing.aging import Aging
from driftline.auditing.change_date import ChangeDate
from driftline.auditing.estimate import Estimate
from driftline.auditing.examples import table
from driftline.auditing.page.titles import over_time_title, policies_title
from driftline.auditing.page.view import View
from driftline.auditing.recommendation import Policies
from driftline.auditing.shape import Cut, Shape
from driftline.auditing.summary import Summary, cheaper_policy, summarize_model

pytestmark = pytest.mark.xdist_group("audit-summary")

GAIN, NOTHING = Estimate(0.1, 0.05, 0.15), Estimate(0.0, -0.05, 0.05)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return driftline.audit(
        table("concept", rows=600), time="when", target="y", model="logistic-regression", period="60 rows"
    )


def recommending(policies: Policies, policy: str, reason: Any, **changes: Any) -> Policies:
    return replace(policies, recommendation=replace(policies.recommendation, policy=policy, reason=reason, **changes))


def judged(aging: Aging, **changes: Any) -> Aging:
    return replace(aging, verdict=replace(aging.verdict, **changes))


def calm(aging: Aging) -> Aging:
    """The same result, had no test found anything."""
    quiet = replace(aging.verdict.recalibrated, difference=1.0)
    return judged(aging, recalibrated=quiet, raw=quiet, odd=replace(aging.verdict.odd, p=1.0))


def test_a_changed_relation_is_dated_and_retrained(result: AuditResult) -> None:
    found = result.summary
    assert (found.word, found.tone) == ("Retrain", "act")
    assert found.sentences[0].startswith("The relation between inputs and target changed ")
    assert "Jul 2024" in found.sentences[0] or "Jun 2024" in found.sentences[0]
    assert [row.label for row in found.rows] == ["Gain", "Cause", "How sure", "If costly"]
    assert found.rows[2].answer == "Sure:"


def test_a_date_is_as_precise_as_its_interval(result: AuditResult) -> None:
    assert result.aging is not None
    assert result.policies is not None
    day, hour = np.datetime64("2024-05-14T03"), np.timedelta64(1, "h")
    dates = {
        "on 14 May 2024.": ChangeDate(day, day - hour, day + hour),
        "around 14 May 2024.": ChangeDate(day, day - 4 * hour, day + hour),
        "at 2021.": ChangeDate(2021.0, 2021.0, 2021.0),
        "between 2021 and 2022.": ChangeDate(2021.0, 2021.0, 2022.0),
    }
    for text, date in dates.items():
        aging = judged(result.aging, shape=Shape("abrupt", cuts=(Cut(5),)), dates=(date,))
        found = summarize_model(aging, result.policies, result.data)
        assert found.sentences[0] == f"The relation between inputs and target changed {text}"


def test_another_word_where_the_finding_differs(result: AuditResult) -> None:
    aging, policies, data = result.aging, result.policies, result.data
    assert aging is not None
    assert policies is not None

    def summary(aging: Aging, policy: str, reason: str, newer: Estimate = NOTHING) -> Summary:
        return summarize_model(aging, recommending(policies, policy, reason, newer_rows=newer), data)

    assert summary(calm(aging), "never", "no-aging").word == "Keep it"
    assert summary(calm(aging), "never", "no-aging").tone == "keep"
    doubtful = summary(calm(aging), "never", "no-aging", GAIN)
    assert (doubtful.word, doubtful.rows[3].label) == ("Not certain", "If retrained")
    assert summary(aging, "never", "not-sure").word == "Not certain"
    assert summary(aging, "recalibrate", "recalibrate").word == "Recalibrate"
    short = summary(judged(aging, has_skill=False), "never", "unknown")
    assert short.word == "Not certain"
    assert short.sentences[0].startswith("Models of one period are not surely better than a constant answer")
    assert "longer periods" in short.sentences[1], "models of more rows are better"
    results = tuple(replace(one, above_trivial=NOTHING) for one in policies.results)
    hopeless = replace(recommending(policies, "never", "unknown"), results=results)
    weak = summarize_model(judged(aging, has_skill=False), hopeless, data)
    assert (weak.word, weak.sentences[0]) == ("Inspect", "The model is not surely better than a constant answer.")
    few = summary(judged(calm(aging), recalibrated=replace(calm(aging).verdict.recalibrated, order=None)), "never", "x")
    assert few.word == "Not certain"
    assert "too few" in few.sentences[0]


def test_titles_claim_no_more_than_the_intervals(result: AuditResult) -> None:
    assert result.policies is not None
    assert over_time_title(View(result)).startswith("Left alone, the model falls to ")
    same = tuple(
        replace(r, gained=NOTHING, by_period=result.policies["never"].by_period) for r in result.policies.results
    )
    unsure = replace(result, policies=replace(result.policies, results=same))
    assert over_time_title(View(unsure)).endswith(": no certain difference")
    assert policies_title(View(unsure)) == "Nothing beats never retraining for certain"
    assert policies_title(View(result)) != "Nothing beats never retraining for certain"


def test_a_gain_of_recalibration_is_not_called_one_of_retraining(result: AuditResult) -> None:
    assert result.policies is not None
    results = tuple(replace(r, gained=GAIN if r.policy == "recalibrate" else NOTHING) for r in result.policies.results)
    repaired = replace(result, policies=replace(result.policies, results=results))
    assert policies_title(View(repaired)) == "Recalibration gains 10.0 points; no retraining surely gains more"


def test_fewer_retrainings_are_praised_only_for_more_than_their_share(result: AuditResult) -> None:
    policies = result.policies
    assert policies is not None

    def title(*gains: tuple[int, float], reason: str = "knee") -> str:
        made = [
            replace(policies["all-history"], retrainings=n, gained=Estimate(gain, gain - 0.01, gain + 0.01))
            for n, gain in gains
        ]
        known = recommending(replace(policies, results=(*made, policies["never"])), "never", reason)
        return policies_title(View(replace(result, policies=known)))

    assert title((9, 0.1), (8, 0.089)) == "Retraining gains 10.0 points, and fewer retrainings gain less"
    assert title((9, 0.1), (1, 0.08)) == "Each retraining buys less: 1 of 9 gives 80% of the gain"
    assert title((9, 0.1), (3, 0.098)) == "3 retrainings give 98% of what 9 give"
    assert title((1, 0.1)) == "One retraining gains 10.0 points; no policy surely gains more"
    assert title((9, 0.1), reason="no-aging") == "Retraining gains 10.0 points at best, and no aging was found"


def test_an_odd_loss_is_behind_only_by_an_amount_that_shows(result: AuditResult) -> None:
    aging = result.aging
    assert aging is not None
    quiet = calm(aging)
    rounding, real = (replace(quiet.sizes, staleness=Estimate(v, v / 2, 2 * v)) for v in (1e-17, 0.02))
    assert not replace(quiet, sizes=rounding).is_behind
    assert replace(quiet, sizes=real).is_behind
    assert replace(quiet, sizes=real).is_uncertain


def test_a_long_list_keeps_the_recommended_policy(result: AuditResult) -> None:
    policies = result.policies
    assert policies is not None
    front = tuple(replace(r, on_frontier=r.policy != "trivial") for r in policies.results)
    for policy in ("never", "window-3", front[0].policy):
        shown = str(replace(result, policies=recommending(replace(policies, results=front), policy, "knee")))
        assert shown.count("(recommended)") == 1, policy


def test_a_horizon_is_not_seen_only_where_no_model_has_the_event(result: AuditResult) -> None:
    found, aging = result.horizons, result.aging
    assert found is not None
    assert aging is not None

    def line(aged: Aging, **changes: Any) -> str:
        sh = replace(found.sh, **changes)
        curve = replace(found.curve, horizon=2)
        text = str(replace(result, aging=aged, horizons=replace(found, sh=sh, curve=curve)))
        return next(row for row in text.splitlines() if row.startswith("Horizon"))

    assert "within" in line(aging, events=3, p=0.01)
    assert f"after {aging.age(2)} surely below 90% of a new model" in line(aging, events=3, p=0.4)
    assert "none beyond noise within" in line(calm(aging), events=3, p=0.4)
    assert "not seen within" in line(calm(aging), events=0)


def test_more_rows_help_only_if_all_history_beats_never(result: AuditResult) -> None:
    aging, policies, data = result.aging, result.policies, result.data
    assert aging is not None
    assert policies is not None
    for gained, helps in ((GAIN, True), (NOTHING, False)):
        results = tuple(replace(r, gained=gained) if r.policy == "all-history" else r for r in policies.results)
        made = recommending(replace(policies, results=results), "never", "no-aging", newer_rows=NOTHING, more_rows=GAIN)
        found = summarize_model(calm(aging), made, data)
        assert ("more rows would help" in found.sentences[1]) is helps
        assert (found.rows[3].label == "If cheap") is helps


def test_the_cheaper_policy_surely_gains_with_fewer_retrainings(result: AuditResult) -> None:
    policies = result.policies
    assert policies is not None
    most = recommending(policies, "all-history", "knee")
    found = cheaper_policy(most)
    assert found is not None
    assert found.gained.low > 0
    assert found.retrainings < most.recommended.retrainings
    assert cheaper_policy(recommending(policies, "never", "no-aging")) is None
