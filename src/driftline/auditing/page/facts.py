"""The three facts of an audit's page: each one big number, its interval, and a small picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftline.auditing.findings import interval
from driftline.auditing.page.detail_charts import survival_chart
from driftline.auditing.page.view import View
from driftline.auditing.wording import typeset
from driftline.report.page.embed import PageCharts, PlacedChart

MAX_BARS = 7


@dataclass(frozen=True)
class Bar:
    """The distance of one input."""

    name: str
    percent: float
    text: str
    moved: bool


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval on a scale; all places in percent of its length."""

    low: float
    width: float
    value: float
    one: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Fact:
    """A question and one big number."""

    question: str
    anchor: str
    number: str
    unit: str = ""
    lines: tuple[str, ...] = ()
    axis: str = ""
    chart: PlacedChart | None = None
    ratio: Ratio | None = None
    bars: tuple[Bar, ...] = ()

    @property
    def picture(self) -> bool:
        return bool(self.chart or self.ratio or self.bars)


def facts(view: View, charts: PageCharts) -> list[Fact]:
    """Return the three facts: how much is kept, how long, what moved; a log has its scores instead of the first two."""
    if view.result.log is not None:
        return [*_log_facts(view), _inputs(view)]
    return [_kept(view), _horizon(view, charts), _inputs(view)]


def _kept(view: View) -> Fact:
    sizes, metric = view.result.sizes[0], view.metric
    tas, verdict = sizes.tas, view.result.verdict
    if verdict is not None and not verdict.has_skill:
        lines = ("the model is no better", "than a constant answer")
        return Fact("Share of a new model's score kept (TAS)", "tas", "Not known", "", lines)
    if not tas.is_known:
        lines = (typeset(interval(metric, sizes.staleness)), "mean over all pairs of periods")
        number, _, unit = metric.difference(sizes.staleness.value).partition(" ")
        return Fact("What an old model is behind a new one", "staleness", typeset(number), unit, lines)
    what = metric.title if metric.higher_is_better else "skill"
    question = f"Share of a new model's {what} kept (TAS)"
    lines = (typeset(f"[{tas.low:.3f}, {tas.high:.3f}]"), f"{tas.n} models")
    return Fact(question, "tas", f"{tas.value:.3f}", "", lines, ratio=_ratio(tas.value, tas.low, tas.high))


def _ratio(value: float, low: float, high: float) -> Ratio:
    """Return a ratio on a scale that has 1 and a lower round number.

    >>> _ratio(0.9, 0.85, 0.95)
    Ratio(low=25.0, width=50.0, value=50.0, one=100.0, ticks=((0.0, '0.8'), (50.0, '0.9'), (100.0, '1')))
    """
    step = next(s for s in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, math.inf) if max(high, 1) - min(low, 0.9) <= 4 * s)
    step = step if math.isfinite(step) else max(high, 1) - min(low, 0.9)
    first, last = (math.floor(round(min(low, 1 - step) / step, 6)), math.ceil(round(max(high, 1) / step, 6)))
    start, length = first * step, (last - first) * step

    def place(number: float) -> float:
        return round(100 * (number - start) / length, 1)

    ticks = tuple((place(k * step), f"{k * step:.2g}") for k in range(first, last + 1))
    return Ratio(place(low), round(place(high) - place(low), 1), place(value), place(1.0), ticks)


def _horizon(view: View, charts: PageCharts) -> Fact:
    horizons, aging, question = view.result.horizons, view.result.aging, "How long a model stays valid (SH)"
    assert aging is not None
    if horizons is None or not aging.verdict.has_skill:
        return Fact(question, "sh", "Not known", "", ("new models have too little skill for a ratio",))
    sh, k = horizons.sh, aging.pieces
    limit = aging.age(sh.limit)
    chart = survival_chart(view, charts, sh, "Share of models that are still valid, by age")
    axis = f"% still valid, by age in {view.unit}"
    verdict, surely = aging.verdict, horizons.curve.horizon
    lasting = verdict.aged and sh.events and sh.depends_on_order
    if (verdict.aged or verdict.miscalibrated) and surely is not None and not lasting:
        age, _, unit = aging.age(surely).partition(" ")
        until = ("until surely below", typeset(f"{100 * horizons.delta:g}% of a new model"))
        return Fact("How long a model stays valid", "sh", age, unit, until, axis, chart)
    if not lasting:
        noise = ("beyond noise",) if sh.events else ()
        return Fact(question, "sh", "Not seen", "", (f"within {limit}", *noise), axis, chart)
    unit = view.one if sh.value / k == 1 else view.unit
    lines = (typeset(f"[{sh.low / k:.1f}, {sh.high / k:.1f}]"), f"mean of {sh.n} models", f"within {limit}")
    return Fact(question, "sh", f"{sh.value / k:.1f}", unit, lines, axis, chart)


def _inputs(view: View) -> Fact:
    shift, question = view.result.shift, "What moved: inputs"
    if shift is None or not shift.features:
        return Fact(question, "distance", "Not known", "", ("there are no feature columns",))
    bars = tuple(
        Bar(
            f.feature,
            round(100 * f.largest, 1),
            "1" if f.largest > 0.995 else f"{f.largest:.2f}".removeprefix("0"),
            f.changed,
        )
        for f in shift.features[:MAX_BARS]
    )
    lines = ("largest distance", f"from {view.words[0]}")
    return Fact(question, "distance", str(len(shift.changed_features)), f"of {len(shift.features)}", lines, bars=bars)


def _log_facts(view: View) -> list[Fact]:
    log, metric = view.result.log, view.metric
    assert log is not None
    own, later = log.first_own, log.first_later
    first = Fact(
        f"{metric.title[:1].upper()}{metric.title[1:]} after {view.words[0]}",
        "log",
        metric.text(later.value),
        "",
        (
            typeset(interval(metric, later)),
            typeset(f"{metric.text(own.value)} {view.names.within(view.result.data.periods[0])}"),
        ),
    )
    number, _, unit = metric.difference(log.above.value, sign=True).partition(" ")
    second = Fact(
        "Better than a constant answer by",
        "baseline",
        typeset(number),
        unit,
        (typeset(interval(metric, log.above)), typeset(f"the constant answer: {metric.text(log.baseline.value)}")),
    )
    return [first, second]
