"""Inputs that moved: their distribution then and now, their distance over time, and a sentence about each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import altair as alt

from driftline.auditing.feature_shift import MIN_DISTANCE, FeatureShift
from driftline.auditing.histograms import Histogram, now_periods
from driftline.auditing.page.view import View
from driftline.auditing.wording import count_text, plain_number
from driftline.report.analysis.curves import Series
from driftline.report.page.embed import PageCharts, PlacedChart
from driftline.report.page.look import NEW, OLD, OLD_SOFT, REST, SOFT, look, named_axis

MAX_FEATURES = 6
CONSTANT = 0.995  # share of rows in one bin
CUT = 2.5  # times the largest share of the other time, at which a bar is cut


@dataclass(frozen=True)
class FeatureCard:
    """One input: what happened to it, and its two charts."""

    name: str
    largest: float
    text: str
    histogram: PlacedChart
    distance: PlacedChart


def feature_cards(view: View, charts: PageCharts) -> list[FeatureCard]:
    """Return the inputs that moved most."""
    shift = view.result.shift
    moved = [] if shift is None else shift.changed_features[:MAX_FEATURES]
    cards = []
    for feature in moved:
        text = describe_feature(feature, view)
        cards.append(
            FeatureCard(
                feature.feature,
                feature.largest,
                text,
                charts.add_chart(f"{feature.feature} then and now", _histogram(feature, view, charts)),
                charts.add_chart(f"{feature.feature}: distance", _distance(feature, view, charts)),
            )
        )
    return cards


def features_title(view: View) -> str:
    """Return what the inputs did, as a title."""
    shift = view.result.shift
    if shift is None:
        return "Nothing is known about the inputs: there are no feature columns"
    moved, first = shift.changed_features, view.words[0]
    if not moved:
        return f"No input moved away from {first}"
    onsets = Counter(_onset(feature) for feature in moved)
    onset, count = onsets.most_common(1)[0]
    if count > 1 and count * 2 >= len(moved) and onset > 1:
        return f"{_inputs(count)} start to move {view.names.within(view.names.names[onset])}"
    if len(moved) == 1:
        return f"One of {len(shift.features)} inputs moved: {moved[0].feature}"
    return f"{count_text(len(moved)).capitalize()} of {len(shift.features)} inputs moved, {moved[0].feature} most"


def _inputs(count: int) -> str:
    return f"{count_text(count).capitalize()} input{'' if count == 1 else 's'}"


def _onset(feature: FeatureShift) -> int:
    """Return the first period in which a feature has moved."""
    return 1 + next((k for k, distance in enumerate(feature.by_period) if distance >= MIN_DISTANCE), 0)


def describe_feature(feature: FeatureShift, view: View) -> str:
    """Return what happened to an input in a few words."""
    both, onset = feature.histogram, _onset(feature)
    since = f"since {view.words[onset]}" if onset > 1 else f"after {view.words[0]}"
    if both.missing_now - both.missing_then > MIN_DISTANCE:
        return f"missing in {100 * both.missing_now:.0f}% of rows now, {100 * both.missing_then:.0f}% then"
    if max(both.then) >= CONSTANT and max(both.now) < CONSTANT:
        return f"constant until {view.words[onset - 1]}, varies since"
    if feature.last < MIN_DISTANCE or feature.last < feature.largest / 3:
        return f"moved most {view.names.within(feature.largest_at)}, then came back"
    if both.categories:
        return _category_text(both)
    then, now = (_median(both, shares) for shares in (both.then, both.now))
    spread = _spread(both)
    if abs(now - then) < 0.25 * spread:
        return f"another shape {since}, same middle"
    what = "" if both.measure == "value" else f"{both.measure}: "
    return f"{what}{'higher' if now > then else 'lower'} {since}, middle {plain_number(then)} to {plain_number(now)}"


def _category_text(both: Histogram) -> str:
    changes = [b - a for a, b in zip(both.then, both.now, strict=True)]
    k = max(range(len(changes)), key=lambda i: abs(changes[i]))
    verb = "rose" if changes[k] > 0 else "fell"
    return f"{both.categories[k]} {verb} from {100 * both.then[k]:.0f}% to {100 * both.now[k]:.0f}%"


def _quantile(both: Histogram, shares: tuple[float, ...], level: float) -> float:
    total, reached = sum(shares), 0.0
    for low, high, share in zip(both.edges, both.edges[1:], shares, strict=False):
        if share and reached + share >= level * total:
            return low + (high - low) * (level * total - reached) / share
        reached += share
    return both.edges[-1]


def _median(both: Histogram, shares: tuple[float, ...]) -> float:
    return _quantile(both, shares, 0.5)


def _spread(both: Histogram) -> float:
    return _quantile(both, both.then, 0.75) - _quantile(both, both.then, 0.25)


def now_text(view: View) -> str:
    """Return the periods that count as now."""
    words, count = view.words, now_periods(len(view.words))
    return words[-1] if count == 1 else f"{words[-count]} to {words[-1]}"


def _histogram(feature: FeatureShift, view: View, charts: PageCharts) -> dict[str, object]:
    both = feature.histogram
    edges = both.edges or tuple(range(len(both.categories) + 1))
    top = 100 * _top(both)
    bins = list(zip(edges, edges[1:], both.then, both.now, strict=False))
    rows = [
        [a, b, round(100 * then, 2), round(100 * now, 2), min(round(100 * then, 2), top), _bin_name(both, k)]
        for k, (a, b, then, now) in enumerate(bins)
    ]
    corners = [(place, min(round(100 * now, 2), top)) for a, b, _, now in bins for place in (a, b)]
    outline = [(edges[0], 0.0), *corners, (edges[-1], 0.0)]
    data = charts.add_data(Series(["from", "to", "then", "now", "bar", "bin"], rows))
    line = charts.add_data(Series(["from", "now", "place"], [[*corner, k] for k, corner in enumerate(outline)]))
    x = alt.X(
        "from:Q", axis=_bins_axis(both, edges), scale=alt.Scale(domain=[edges[0], edges[-1]], nice=False, zero=False)
    )
    y = alt.Y("bar:Q", axis=None, scale=alt.Scale(domain=[0, top], nice=False))
    tooltip = [
        alt.Tooltip("bin:N", title=feature.feature),
        alt.Tooltip("then:Q", title=f"then, % of rows of {view.words[0]}"),
        alt.Tooltip("now:Q", title="now, % of rows"),
    ]
    base = alt.Chart(alt.NamedData(name=data), width="container", height=52)
    now = alt.Chart(alt.NamedData(name=line), width="container", height=52).encode(x=x, y=alt.Y("now:Q", stack=None))
    layers = [
        base.mark_rect(color=REST, opacity=0.5).encode(x=x, x2="to:Q", y=y, y2=alt.Y2Datum(0)),
        now.mark_area(color=NEW, opacity=0.12),
        now.mark_line(color=NEW, strokeWidth=1.6).encode(order="place:Q"),
        *_cut_bar(view, bins, top),
        base.mark_rect(opacity=0, color=REST).encode(x=x, x2="to:Q", tooltip=tooltip),
    ]
    return look(alt.layer(*layers), f"{feature.feature}: distribution then and now. {describe_feature(feature, view)}.")


def _bins_axis(both: Histogram, edges: tuple[float, ...]) -> alt.Axis:
    if both.categories:
        names = {k + 0.5: name for k, name in enumerate(both.categories)}
        axis = named_axis(names)
        axis.labelLimit, axis.labelFlush = max(40, 240 // len(names)), False
        return axis
    values = [edges[0], edges[-1]]
    return alt.Axis(values=values, format="~g", grid=False, title=None, labelFlush=True, labelPadding=4, domain=True)


def _top(both: Histogram) -> float:
    """Return the share at the top of the chart: a bar far above all others is cut."""
    low, high = sorted([max(both.then), max(both.now)])
    return CUT * low if high > CUT * low > 0 else max(high, 0.01)


def _cut_bar(view: View, bins: list[tuple[float, float, float, float]], top: float) -> list[alt.Chart]:
    """Return the share of the bar that is cut at the top, beside it."""
    start, end, then, now = max(bins, key=lambda part: max(part[2], part[3]))
    if 100 * max(then, now) <= top + 0.01:
        return []
    right = (start + end) / 2 > (bins[0][0] + bins[-1][1]) / 2
    text = f"{100 * then:.0f}% then" if then > now else f"{100 * now:.0f}% now"
    row = {"from": start if right else end, "bar": top, "text": text}
    mark = alt.Chart(alt.Data(values=[row]), width="container").mark_text(
        align="right" if right else "left", baseline="top", dx=-4 if right else 4, color=SOFT, fontSize=11
    )
    return [mark.encode(x="from:Q", y="bar:Q", text="text:N")]


def _bin_name(both: Histogram, k: int) -> str:
    if both.categories:
        return both.categories[k]
    return " to ".join(plain_number(edge, digits=4) for edge in both.edges[k : k + 2])


def _distance(feature: FeatureShift, view: View, charts: PageCharts) -> dict[str, object]:
    """Draw the distance from the first period, which is 0 in the first period itself."""
    distances = [0.0, *feature.by_period]
    rows = [
        [k, view.words[k], round(value, 3)]
        for k, value in enumerate(distances)
        if value == value  # NaN: no values
    ]
    data = charts.add_data(Series(["at", "time", "distance"], rows))
    last = len(view.words) - 1
    short = [view.words[0].split()[-1], view.words[last].split()[-1]]
    ends = short if short[0] != short[1] else [view.words[0], view.words[last]]
    axis = named_axis({0: ends[0], last: ends[1]})
    x = alt.X("at:Q", axis=axis, scale=alt.Scale(domain=[0, last], nice=False))
    y = alt.Y("distance:Q", axis=None, scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(alt.NamedData(name=data), width="container", height=22).encode(x=x, y=y)
    tooltip = [alt.Tooltip("time:N", title=view.one), alt.Tooltip("distance:Q", title="distance, 0 to 1", format=".2f")]
    layers = [
        base.mark_area(color=OLD_SOFT, opacity=0.9, line={"color": OLD, "strokeWidth": 1.4}),
        base.mark_point(opacity=0, size=60, filled=True).encode(tooltip=tooltip),
    ]
    return look(alt.layer(*layers), f"Distance of {feature.feature} from {view.words[0]} over time, 0 to 1.")
