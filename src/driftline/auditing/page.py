"""The audit as one self-contained page: answers, charts, tables, protocol. It is made from the result only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from driftline.auditing.answers import describe_policy
from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import interval
from driftline.report.analysis.curves import Series
from driftline.report.figures.axes import share_range
from driftline.report.page import charts
from driftline.report.page.embed import PageCharts, PlacedChart, bundle, template
from driftline.types import JsonObject, Settings
from driftline.version import __version__

if TYPE_CHECKING:
    from driftline.auditing.policies import PolicyResult
    from driftline.auditing.result import AuditResult, Matrix

COLUMNS = ["method", "time", "value", "low", "high", "n", "seeds", "interval"]
MAX_FEATURES = 30  # in the table


def render(result: AuditResult, card: Settings) -> str:
    """Return the page as HTML."""
    figures, metric, shift = PageCharts(), result.metric, result.shift
    curves = [_quality(result, figures)]
    if result.policies:
        curves += [_replay(result, figures), *_online(result, figures)]
    maps = [] if result.matrix is None else [_map(result.matrix, metric.title, figures)]
    text: str = template("audit.html.j2", "driftline.auditing").render(
        result=result,
        answers=result.answers,
        data=result.data,
        metric=metric,
        curves=curves,
        maps=maps,
        policies=result.policies,
        detectors=result.detectors,
        shift=shift,
        features=shift.features[:MAX_FEATURES] if shift else (),
        uneven={row.feature: row for row in shift.uneven_features} if shift else {},
        card=_yaml(card),
        points=_points,
        number=_number,
        interval=partial(interval, metric),
        points_interval=_points_interval,
        describe_policy=describe_policy,
        version=__version__,
        figures=figures.content(),
        bundle=bundle(),
    )
    return text


def _quality(result: AuditResult, figures: PageCharts) -> PlacedChart:
    """Draw the first model and the new ones over time, or the logged predictions."""
    title = result.metric.title
    if result.matrix is None:
        assert result.log is not None
        curves: dict[str, Sequence[Estimate]] = {"logged": result.log.by_period}
        periods: Sequence[str] = result.data.periods
    else:
        matrix, periods = result.matrix, result.matrix.periods
        curves = {
            "first model": [_entry(matrix, 0, k) for k in range(len(periods))],
            "new model of the same rows": [_entry(matrix, k, k) for k in range(len(periods))],
        }
    return figures.add_chart(f"{title} over time", _chart(curves, periods, title, figures))


def _entry(matrix: Matrix, t: int, tau: int) -> Estimate:
    value, error = float(matrix.score[t, tau]), 1.96 * float(matrix.error[t, tau])
    return Estimate(value, value - error, value + error, int(matrix.n[tau]))


def _replay(result: AuditResult, figures: PageCharts) -> PlacedChart:
    """Draw the score of each policy on the frontier, and of never retraining."""
    assert result.policies is not None
    shown = [r for r in result.policies.results if r.on_frontier or r.policy in ("never", "trivial")]
    deployed = result.data.periods[-len(shown[0].by_period) :]
    spec = _chart({r.policy: r.by_period for r in shown}, deployed, result.metric.title, figures)
    if len(spec.get("layer", [])) > 1:
        del spec["layer"][0]  # the bands of many policies would hide the lines; points show their intervals
    return figures.add_chart("replay: policies that no other one dominates", spec)


def _online(result: AuditResult, figures: PageCharts) -> list[PlacedChart]:
    """Draw the online TAS of the policy that decides by it, if it is known."""
    assert result.policies is not None
    policy: PolicyResult = result.policies["on-online-tas"]
    curve = [Estimate(value, math.nan, math.nan) for value in policy.online_tas]
    if not any(estimate.is_known for estimate in curve):
        return []
    times = [str(k + 1) for k in range(len(curve))]
    spec = _chart({"online TAS": curve}, times, "share of a new model", figures)
    return [figures.add_chart("what was known at the time about the deployed model (on-online-tas)", spec)]


def _chart(
    curves: Mapping[str, Sequence[Estimate]], times: Sequence[str], title: str, figures: PageCharts
) -> JsonObject:
    """Return a line chart with its own legend."""
    rows = [
        [name, time, estimate.value, estimate.low, estimate.high, estimate.n, 1, "examples" if estimate.n else ""]
        for name, curve in curves.items()
        for time, estimate in zip(times, curve, strict=True)
    ]
    series = Series(COLUMNS, _rounded(rows))
    spec = charts.lines(figures.add_data(series), list(times), list(curves), title, share_range(series))
    for layer in spec.get("layer", [spec]):
        if layer.get("encoding", {}).get("color"):
            layer["encoding"]["color"]["legend"] = {"title": None, "orient": "top", "columns": 5, "symbolOpacity": 1}
            layer["encoding"].get("strokeDash", {}).pop("legend", None)  # the two share one legend
    return spec


def _map(matrix: Matrix, title: str, figures: PageCharts) -> PlacedChart:
    """Draw A(t, tau) as a heat map."""
    times = list(matrix.periods)
    rows = [[times[t], times[tau], *_cell(_entry(matrix, t, tau))] for t, tau in np.ndindex(len(times), len(times))]
    series = Series(["time", "tau", *COLUMNS[2:]], _rounded(rows))
    least, most = min(series.values("value")), max(series.values("value"))
    spec = charts.accuracy_map(figures.add_data(series), times, (least, max(most, least + 0.01)))
    return figures.add_chart(f"A(t, τ): {title}", spec)


def _cell(entry: Estimate) -> list[object]:
    return [entry.value, entry.low, entry.high, entry.n, 1, "examples"]


def _rounded(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Round floats to four digits; NaN becomes None."""
    return [[_round(value) if isinstance(value, float) else value for value in row] for row in rows]


def _round(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


def _points(value: float, sign: bool = False) -> str:
    """Return a share as percentage points, or a dash if it is not known."""
    return f"{100 * value:{'+' if sign else ''}.1f}" if math.isfinite(value) else "–"


def _points_interval(estimate: Estimate) -> str:
    """Return the 95 % interval of a share in points."""
    if not math.isfinite(estimate.low):
        return "[–]"
    return f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _number(value: float | None, form: str) -> str:
    """Return a formatted number, or a dash if it is not known."""
    return "–" if value is None or math.isnan(value) else form % value


def _yaml(card: Settings) -> str:
    import yaml

    return yaml.safe_dump(dict(card), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
