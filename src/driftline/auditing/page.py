"""The audit as one self-contained page: answers, charts, tables, protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from driftline.auditing.answers import Answer, describe_policy, interval, points
from driftline.auditing.data import DataSummary
from driftline.auditing.decay import AccuracyMatrix, Decay, LogDecay
from driftline.auditing.detectors import DetectorResult
from driftline.auditing.estimate import Estimate
from driftline.auditing.policies import Policies, PolicyResult
from driftline.auditing.shift import Shift
from driftline.report.analysis.curves import Series
from driftline.report.figures.axes import share_range
from driftline.report.page import charts
from driftline.report.page.embed import PageCharts, PlacedChart, bundle, template
from driftline.types import JsonObject, Settings
from driftline.version import __version__

COLUMNS = ["method", "time", "value", "low", "high", "n", "seeds", "interval"]
MAX_FEATURES = 30  # in the table


def render(
    answers: Sequence[Answer],
    data: DataSummary,
    decay: Decay | LogDecay,
    shift: Shift | None,
    policies: Policies | None,
    detectors: Sequence[DetectorResult],
    card: Settings,
) -> str:
    """Return the page as HTML."""
    figures, results = PageCharts(), policies.results if policies else ()
    curves = [_quality(decay, data.periods, figures)]
    if results:
        curves += [_replay(results, data.periods, figures), *_online(results, data.periods, figures)]
    maps = _maps(decay.matrix, list(data.periods), figures) if isinstance(decay, Decay) else []
    text: str = template("audit.html.j2", "driftline.auditing").render(
        answers=answers,
        data=data,
        curves=curves,
        maps=maps,
        policies=policies,
        detectors=detectors,
        shift=shift,
        features=shift.features[:MAX_FEATURES] if shift else (),
        uneven={row.feature: row for row in shift.uneven_features} if shift else {},
        card=_yaml(card),
        points=points,
        number=_number,
        interval=interval,
        describe_policy=describe_policy,
        version=__version__,
        figures=figures.content(),
        bundle=bundle(),
    )
    return text


def _quality(decay: Decay | LogDecay, periods: Sequence[str], figures: PageCharts) -> PlacedChart:
    """Draw the first model and the new ones over time, or the logged predictions."""
    if isinstance(decay, Decay):
        cells = range(len(periods))
        curves = {
            "first model": [_entry(decay.matrix, 0, k) for k in cells],
            "new model (oracle)": [_entry(decay.matrix, k, k) for k in cells],
        }
    else:
        curves = {"logged": list(decay.by_period)}
    return figures.add_chart("quality over time", _chart(curves, periods, "quality", figures))


def _entry(matrix: AccuracyMatrix, t: int, tau: int) -> Estimate:
    value, low, high = (float(part[t, tau]) for part in (matrix.accuracy, matrix.low, matrix.high))
    return Estimate(value, low, high, int(matrix.n[t, tau]))


def _replay(results: Sequence[PolicyResult], periods: Sequence[str], figures: PageCharts) -> PlacedChart:
    """Draw the quality of each policy."""
    deployed = periods[-len(results[0].by_period) :]
    spec = _chart({result.policy: list(result.by_period) for result in results}, deployed, "quality", figures)
    del spec["layer"][0]  # the bands of many policies would hide the lines; points show their intervals
    return figures.add_chart("replay: quality of each policy, period by period", spec)


def _online(results: Sequence[PolicyResult], periods: Sequence[str], figures: PageCharts) -> list[PlacedChart]:
    """Draw the online TAS and TTR of the policy that decides by them, if they are known."""
    result = next(result for result in results if result.online_tas)
    curves = {
        name: [Estimate(value, math.nan, math.nan) for value in values]
        for name, values in (("online TAS", result.online_tas), ("online TTR", result.online_ttr))
    }
    if not any(estimate.is_known for curve in curves.values() for estimate in curve):
        return []
    spec = _chart(curves, periods[-len(result.online_tas) :], "share of a new model", figures)
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


def _maps(matrix: AccuracyMatrix, times: list[str], figures: PageCharts) -> list[PlacedChart]:
    """Draw A(t, tau) and g(t, tau) as heat maps."""
    maps = []
    for title, values, low, high in (
        ("A(t, τ)", matrix.accuracy, matrix.low, matrix.high),
        (f"g(t, τ), white at δ = {matrix.delta}", matrix.ttr, matrix.ttr_low, matrix.ttr_high),
    ):
        if not np.isfinite(values).any():  # no new model has any skill, so there is no ratio
            continue
        series = _cells(matrix, times, values, low, high)
        least, most = (f(series.values("value")) for f in (min, max))
        spec = (
            charts.accuracy_map(figures.add_data(series), times, (least, max(most, least + 0.01)))
            if values is matrix.accuracy
            else charts.transfer_map(figures.add_data(series), times, least, matrix.delta)
        )
        maps.append(figures.add_chart(title, spec))
    return maps


def _cells(matrix: AccuracyMatrix, times: list[str], values: np.ndarray, low: np.ndarray, high: np.ndarray) -> Series:
    rows = [
        [
            times[i],
            times[j],
            float(values[i, j]),
            float(low[i, j]),
            float(high[i, j]),
            int(matrix.n[i, j]),
            1,
            "examples",
        ]
        for i, j in np.argwhere(np.isfinite(values))
    ]
    return Series(["time", "tau", *COLUMNS[2:]], _rounded(rows))


def _rounded(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Round floats to four digits; NaN becomes None."""
    return [[_round(value) if isinstance(value, float) else value for value in row] for row in rows]


def _round(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


def _number(value: float | None, form: str) -> str:
    """Return a formatted number, or a dash if it is not known."""
    return "–" if value is None or math.isnan(value) else form % value


def _yaml(card: Settings) -> str:
    import yaml

    return yaml.safe_dump(dict(card), sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
