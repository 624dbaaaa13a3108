"""Tables of paired comparisons between methods."""

from __future__ import annotations

import math

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.comparisons import Comparison, compare_pairs
from driftline.report.analysis.groups import Group, groups
from driftline.report.analysis.result_table import Column, headline_columns
from driftline.report.format import NONE, format_interval, format_p, format_value
from driftline.report.tables.model import Table, text_columns, text_row

NOTE = (
    "Difference: the first minus the second, which has the worse mean, on common seeds; 95% interval, clipped to "
    "possible values. Over seeds: paired t-test, which needs three seeds, and the exact sign-flip test, whose p is at "
    "least 2 / 2^n."
)
OVER_TIME = "Over times: one common seed; moving-block bootstrap over time, which is about this one stream."
CORRECTED = "p is Holm-corrected for the {count} pair(s) of this table that can be tested."
UNTESTED = "No pair can be tested: that needs three common seeds, or one and a score at ten times or more."


def comparison_tables(record: Record) -> list[Table]:
    """Return a table for each headline metric of each group that has two methods or more."""
    tables = [
        _table(group, column, found)
        for group in groups(record)
        for column in headline_columns(group)
        if (found := compare_pairs(group, column))
    ]
    if not tables:
        raise UserError("there are no two methods to compare: run others on the same data with --methods a,b")
    return tables


def _table(group: Group, column: Column, pairs: list[Comparison]) -> Table:
    difference = "difference (points)" if column.share else "difference"
    records = (
        {
            **{"group": group.title, "metric": column.metric, "stat": column.stat},
            **{"first": pair.first, "second": pair.second, "value": pair.difference.value},
            **{"low": pair.difference.low, "high": pair.difference.high, "n": pair.difference.n, "unit": pair.over},
            **{"p": pair.p, "p_flips": pair.p_sign_flip},
        }
        for pair in pairs
    )
    tested = sum(not math.isnan(pair.p) for pair in pairs)
    over_time = [OVER_TIME] if any(pair.over == "times" for pair in pairs) else []
    return Table(
        title=f"{group.title}: {column.name}",
        row_header="first",
        columns=text_columns("second", difference, "95% interval", "n", "p", "p by sign flips"),
        rows=tuple(text_row(*_texts(pair, column.share)) for pair in pairs),
        notes=(NOTE, *over_time, CORRECTED.format(count=tested) if tested else UNTESTED),
        records=tuple(records),
    )


def _texts(pair: Comparison, share: bool) -> tuple[str, ...]:
    difference = pair.difference
    number = (format_value(difference.value, share), format_interval(difference, share) or NONE)
    tests = (format_p(pair.p), format_p(pair.p_sign_flip))
    return (pair.first, pair.second, *number, f"{difference.n} {pair.over}", *tests)
