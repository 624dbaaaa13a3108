"""The audit as one self-contained page: verdict and chart, facts, policies, inputs, and details that fold."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import interval
from driftline.auditing.page.detail_charts import heat_maps, loss_by_age, survival_chart
from driftline.auditing.page.facts import facts
from driftline.auditing.page.feature_charts import feature_cards, features_title, now_text
from driftline.auditing.page.over_time import log_over_time, model_over_time
from driftline.auditing.page.policy_charts import frontier, shortlist
from driftline.auditing.page.terms import protocol, terms
from driftline.auditing.page.titles import over_time_title, policies_note, policies_title, source_line
from driftline.auditing.page.view import View
from driftline.auditing.replay import NEVER
from driftline.auditing.summary import compared_policy
from driftline.auditing.wording import policy_name, typeset
from driftline.report.page.embed import PageCharts, PlacedChart, bundle, safe_json, template
from driftline.types import JsonObject
from driftline.version import __version__

if TYPE_CHECKING:
    from driftline.auditing.result import AuditResult

MAX_FEATURES = 30  # in the table
DIGITS = 6  # of the numbers in the page; audit.json has all


def render(result: AuditResult) -> str:
    """Return the page as HTML."""
    view, charts = View(result), PageCharts()
    draw = log_over_time if result.policies is None else model_over_time
    over_time = draw(view, charts, over_time_title(view))
    context = _policy_context(view, charts) if result.policies else {"policies": None}
    shift = result.shift
    text: str = template("audit.html.j2", "driftline.auditing", filters={"typeset": typeset}).render(
        result=result,
        view=view,
        data=result.data,
        metric=result.metric,
        summary=result.summary,
        answers=result.answers,
        over_time=over_time,
        lines=_lines(view),
        source=typeset(source_line(view)),
        facts=facts(view, charts),
        features=feature_cards(view, charts),
        features_title=features_title(view) if shift is not None else "",
        now=now_text(view),
        shift=shift,
        uneven={row.feature: row for row in shift.uneven_features} if shift else {},
        horizons=result.horizons,
        age_charts=_age_charts(view, charts),
        maps=[] if result.matrix is None else heat_maps(view, charts),
        terms=terms(view),
        protocol=protocol(view),
        most=MAX_FEATURES,
        points=_points,
        points_interval=_points_interval,
        number=_number,
        interval=partial(interval, result.metric),
        version=__version__,
        numbers=safe_json(_shortened(result.to_dict())),
        figures=charts.content(),
        bundle=bundle(),
        **context,
    )
    return text


def _policy_context(view: View, charts: PageCharts) -> JsonObject:
    policies, title = view.result.policies, policies_title(view)
    assert policies is not None
    return {
        "policies": policies,
        "policies_title": title,
        "policies_note": policies_note(view),
        "frontier": frontier(view, charts, title),
        "shortlist": shortlist(policies),
        "name_policy": partial(policy_name, unit=view.unit),
    }


def _lines(view: View) -> list[tuple[str, str]]:
    """Return color and name of the lines over time, for the key on narrow pages."""
    policies = view.result.policies
    if policies is None:
        return [("old", "logged predictions"), ("rest", "constant answer")]
    new = compared_policy(policies, view.result.data.deployed)
    return [("new", view.done(new.policy)), ("old", view.done(NEVER)), ("rest", f"new model, own {view.one}")]


def _age_charts(view: View, charts: PageCharts) -> list[PlacedChart]:
    aging, horizons = view.result.aging, view.result.horizons
    if aging is None:
        return []
    behind = "Points behind a new model, by age" if view.factor == 100 else "Behind a new model, by age"
    placed = [loss_by_age(view, charts, behind)]
    if horizons is not None:
        title = f"Share of models above {100 * horizons.delta:g}% of a new one, by age (%)"
        placed.insert(0, survival_chart(view, charts, horizons.sh, title, height=220))
    return placed


def _shortened(value: Any) -> Any:
    """Return numbers with six digits."""
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _points(value: float) -> str:
    """Return a share as percentage points, or a dash if it is not known."""
    return f"{100 * value:.1f}" if math.isfinite(value) else "–"


def _points_interval(estimate: Estimate) -> str:
    """Return the 95 % interval of a share in points."""
    if not math.isfinite(estimate.low):
        return "[–]"
    return f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _number(value: float | None, form: str) -> str:
    """Return a formatted number, or a dash if it is not known."""
    return "–" if value is None or math.isnan(value) else form % value
