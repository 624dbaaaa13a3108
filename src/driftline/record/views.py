"""Tables computed from a run's scores, which a store's index keeps beside them: tables of results need no more."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

COUNTED = ("metric", "censored", "n")
EACH = "each"
"""The statistic of scores per time; others summarize a run."""


def summary(scores: pa.Table) -> pa.Table:
    """Return the scores that summarize a run."""
    return scores.filter(pc.not_equal(scores["stat"], EACH)) if "stat" in scores.column_names else scores


def censored(scores: pa.Table) -> pa.Table:
    """Return by metric the number of scores per time, and how many of them are censored by the end of the data."""
    if not {"metric", "stat", "censored"} <= set(scores.column_names):
        return pa.schema(zip(COUNTED, (pa.string(), pa.int64(), pa.int64()), strict=True)).empty_table()
    each = scores.filter(pc.equal(scores["stat"], EACH))
    flags = pc.fill_null(each["censored"].cast(pa.int64()), 0)
    columns = {"metric": each["metric"].cast(pa.string()), "censored": flags}
    counted = pa.table(columns).group_by("metric", use_threads=False)
    counted = counted.aggregate([("censored", "sum"), ("metric", "count")])
    return counted.select(["metric", "censored_sum", "metric_count"]).rename_columns(COUNTED)


VIEWS = {"summary": summary, "censored": censored}
SCORES = ("scores", "trivial_scores")
INDEXED = (*SCORES, *VIEWS)
"""The tables and views that an index holds."""
