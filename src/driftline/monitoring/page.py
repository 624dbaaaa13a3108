"""The page of a monitor: is there an alarm, quality over all batches, and what each check found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import altair as alt

from driftline.auditing.estimate import Estimate
from driftline.auditing.metric import Metric
from driftline.auditing.summary import Summary, SummaryRow, Tone
from driftline.auditing.wording import count_text, typeset
from driftline.monitoring.result import BatchResult, score_text
from driftline.report.analysis.curves import Series
from driftline.report.page.embed import PageCharts, PlacedChart, bundle, template
from driftline.report.page.look import NEW, OLD, REST, SOFT, look, named_axis, time_ticks
from driftline.version import __version__

if TYPE_CHECKING:
    from driftline.monitoring.monitor import Monitor

HEIGHT = 268
MAX_ROWS = 60  # of the table; the watch file has all


def render(monitor: Monitor) -> str:
    """Return the page as HTML."""
    watch, metric, history, charts = monitor.watch, monitor.metric, monitor.history, PageCharts()
    alarms = [(result, alarm) for result in reversed(history) for alarm in result.alarms]
    title = _title(metric, watch.reference.quality, history)
    text: str = template(
        "monitor.html.j2", "driftline.monitoring", filters={"typeset": typeset}, base="driftline.auditing"
    ).render(
        reference=watch.reference,
        columns=watch.columns,
        model=watch.model.name,
        metric=metric,
        history=history,
        summary=_verdict(metric, watch.reference.quality, history),
        over_time=_over_time(metric, watch.reference.quality, history, charts, title),
        axis=f"{metric.title[:1].upper()}{metric.title[1:]}{', %' if metric.unit == 'share' else ''}",
        has_estimates=any(_shown(result) is not None for result in history),
        alarms=alarms[:MAX_ROWS],
        alarm_title=f"{count_text(len(alarms)).capitalize()} alarm{'' if len(alarms) == 1 else 's'}"
        if alarms
        else "No alarm so far",
        most=MAX_ROWS,
        score=partial(_score_or_dash, metric),
        version=__version__,
        figures=charts.content(),
        bundle=bundle(),
    )
    return text


def _score_or_dash(metric: Metric, estimate: Estimate | None) -> str:
    return "–" if estimate is None else score_text(metric, estimate)


def _verdict(metric: Metric, reference: Estimate, history: Sequence[BatchResult]) -> Summary:
    """Return the state after the last check."""
    last = history[-1]
    word = "Alarm" if last.alarms else "No alarm"
    tone: Tone = "act" if last.alarms else "keep"
    kinds = [alarm.kind for alarm in last.alarms]
    sentences: tuple[str, ...]
    if last.alarms:
        sentences = (f"The latest batch raised {count_text(len(kinds))}: {', '.join(kinds)}.", last.diagnosis or "")
    else:
        sentences = (f"The latest batch, {last.name}, is as expected.",)
    scored = next((result for result in reversed(history) if result.quality is not None), None)
    rows = [SummaryRow("Reference", score_text(metric, reference), f"{metric.title} on held-out rows")]
    if scored is not None and scored.quality is not None:
        against = f"a new model {score_text(metric, scored.challenger)}" if scored.challenger else ""
        rows.insert(
            0, SummaryRow("Latest", score_text(metric, scored.quality), f"{metric.title} in {scored.name}", against)
        )
    if scored is not None and scored.tas is not None:
        tas = scored.tas
        rows.append(
            SummaryRow("Online TAS", f"{tas.value:.3f} [{tas.low:.3f}, {tas.high:.3f}]", "over the last batches")
        )
    moved = last.moved_inputs
    rows.append(
        SummaryRow("Inputs", f"{len(moved)} of {len(last.inputs)} moved", ", ".join(one.name for one in moved[:4]))
    )
    return Summary(word, tone, tuple(filter(None, sentences)), tuple(rows))


def _title(metric: Metric, reference: Estimate, history: Sequence[BatchResult]) -> str:
    scored = [result.quality for result in history if result.quality is not None]
    if not scored:
        return "No labels have come yet"
    last, sign = scored[-1], 1 if metric.higher_is_better else -1
    now, then = metric.text(last.value), metric.text(reference.value)
    if sign * (last.high if sign > 0 else last.low) < sign * (reference.low if sign > 0 else reference.high):
        return f"The deployed model is at {now}, and was at {then} on the reference"
    return f"The deployed model is at {now}; nothing shows that it is worse than the {then} of the reference"


def _over_time(
    metric: Metric, reference: Estimate, history: Sequence[BatchResult], charts: PageCharts, title: str
) -> PlacedChart:
    """Draw the deployed model, the challenger and the estimate over all batches."""
    names = [result.first for result in history]
    scale = alt.Scale(domainMin=-0.25, domainMax=len(history) - 0.75, nice=False, zero=False)
    x = alt.X("at:Q", scale=scale, axis=named_axis(time_ticks(names, names)))
    factor = 100 if metric.unit == "share" else 1
    level = alt.Chart(alt.Data(values=[{"value": factor * reference.value}]), width="container", height=HEIGHT)
    layers: list[alt.Chart] = [level.mark_rule(color=SOFT, strokeDash=[4, 3]).encode(y=_y("value"))]
    lines: list[tuple[str, str, Callable[[BatchResult], Estimate | None]]] = [
        (REST, "estimated without labels", _shown),
        (NEW, "challenger", lambda result: result.challenger),
        (OLD, "deployed model", lambda result: result.quality),
    ]
    for color, name, choose in lines:
        points = [
            [name, k, result.first, factor * e.value, factor * e.low, factor * e.high, score_text(metric, e), e.n]
            for k, result in enumerate(history)
            if (e := choose(result)) is not None
        ]
        if not points:
            continue
        data = charts.add_data(Series(["method", "at", "time", "value", "low", "high", "score", "n"], points))
        base = alt.Chart(alt.NamedData(name=data), width="container", height=HEIGHT).encode(x=x)
        tooltip = [alt.Tooltip(f"{field}:N", title=field) for field in ("method", "time", "score", "n")]
        layers += [
            base.mark_area(color=color, opacity=0.13).encode(y=_y("low"), y2="high:Q"),
            base.mark_line(color=color, strokeWidth=2.2).encode(y=_y("value")),
            base.mark_point(color=color, filled=True, size=30, opacity=1).encode(y=_y("value"), tooltip=tooltip),
        ]
    alarms = [{"at": k} for k, result in enumerate(history) if result.alarms]
    if alarms:
        marks = alt.Chart(alt.Data(values=alarms), width="container", height=HEIGHT)
        layers.append(marks.mark_rule(color=OLD, strokeDash=[2, 3], opacity=0.7).encode(x=x))
    return charts.add_chart(title, look(alt.layer(*layers), title))


def _shown(result: BatchResult) -> Estimate | None:
    """Return the estimate without labels, with its mean error where that is known; None if it is of no use."""
    found = result.estimated
    if found is None or not found.is_useful:
        return None
    error = found.error or 0.0
    return Estimate(found.value, found.value - error, found.value + error, found.n)


def _y(field: str) -> alt.Y:
    return alt.Y(f"{field}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=None, tickCount=5))
