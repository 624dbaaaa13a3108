"""Tables of paired comparisons between methods."""

from __future__ import annotations

import math

from driftline.errors import UserError
from driftline.record import Record
from driftline.report.analysis.comparisons import Pair, pairs
from driftline.report.analysis.groups import Group, groups
from driftline.report.analysis.result_table import Column, headline
from driftline.report.format import format_p, format_value
from driftline.report.tables.sheet import Sheet

NOTE = (
    "Difference: the first less the second, which has the worse mean, on what both have; 95% interval, cut at what is "
    "possible. n of seeds: paired t test, which takes three, and beside it the exact sign-flip test, whose p cannot be "
    "below 2 / 2^n."
)
ALONG = "n of times: one seed in common; moving blocks of times drawn anew, which speaks of this one stream."
CORRECTED = "p is Holm-corrected for the {count} pair(s) of this table that can be tested."
UNTESTED = "Nothing here can be tested: that takes three seeds in common, or one and a score at ten times or more."


def comparisons(record: Record) -> list[Sheet]:
    """A sheet for each headline metric of each group that has two methods or more."""
    sheets = [
        _sheet(group, column, found)
        for group in groups(record)
        for column in headline(group)
        if (found := pairs(group, column))
    ]
    if not sheets:
        raise UserError("there are no two methods to compare: run others on the same data with --methods a,b")
    return sheets


def _sheet(group: Group, column: Column, found: list[Pair]) -> Sheet:
    apart = "difference (points)" if column.share else "difference"
    head = ("first", "second", apart, "95% interval", "n", "p", "p by sign flips")
    rows = tuple(
        {
            **{"group": group.title, "metric": column.metric, "stat": column.stat},
            **{"first": pair.first, "second": pair.second, "value": pair.found.value},
            **{"low": pair.found.low, "high": pair.found.high, "n": pair.found.n, "unit": pair.over},
            **{"p": pair.p, "p_flips": pair.exact},
        }
        for pair in found
    )
    count = sum(not math.isnan(pair.p) for pair in found)
    along = [ALONG] if any(pair.over == "times" for pair in found) else []
    notes = (NOTE, *along, CORRECTED.format(count=count) if count else UNTESTED)
    return Sheet(f"{group.title}: {column.name}", head, tuple(_line(pair, column.share) for pair in found), rows, notes)


def _line(pair: Pair, share: bool) -> tuple[str, ...]:
    value, low, high, n, _ = pair.found
    interval = "–" if math.isnan(low) else f"[{format_value(low, share)}, {format_value(high, share)}]"
    return (
        *(pair.first, pair.second, format_value(value, share), interval, f"{n} {pair.over}"),
        *(format_p(pair.p), format_p(pair.exact)),
    )
