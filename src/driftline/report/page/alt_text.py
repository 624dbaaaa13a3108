"""Alt text of charts: what a chart shows, with its most important numbers, for screen readers."""

from __future__ import annotations

from driftline.report.analysis.curves import Series

MAX_METHODS = 8


def describe(series: Series) -> str:
    """Return the first and last value of each method, or the range of a map.

    >>> describe(Series(["method", "time", "value"], [["erm", "a", 0.5], ["erm", "b", 0.25], ["ft", "a", 0.75]]))
    'erm 0.5 to 0.25; ft 0.75.'
    >>> describe(Series(["time", "tau", "value"], [["a", "a", 0.5], ["a", "b", 0.25]]))
    'From 0.25 to 0.5.'
    """
    columns = [name for name in ("value", "count") if name in series.columns]
    values = series.values(columns[0]) if columns else []
    if not values:
        return ""
    if "method" not in series.columns or "other" in series.columns:
        return f"From {min(values):.3g} to {max(values):.3g}."
    curves = _curves(series)
    texts = [f"{method} {_ends(curve)}" for method, curve in list(curves.items())[:MAX_METHODS]]
    if len(curves) > MAX_METHODS:
        texts.append(f"and {len(curves) - MAX_METHODS} more in the table of its data")
    return f"{'; '.join(texts)}."


def _curves(series: Series) -> dict[str, list[float]]:
    curves: dict[str, list[float]] = {}
    for row in series.records():
        if row["value"] is not None:
            curves.setdefault(row["method"], []).append(row["value"])
    return curves


def _ends(values: list[float]) -> str:
    return " to ".join(f"{value:.3g}" for value in ([values[0], values[-1]] if len(values) > 1 else values))
