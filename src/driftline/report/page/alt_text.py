"""Charts in words, for those who hear the page: what a chart shows, and its numbers in short."""

from __future__ import annotations

from driftline.report.analysis.curves import Series

SPOKEN = 8  # methods that are named; more would be heard by nobody


def spoken(series: Series) -> str:
    """The course of each method from first to last, or the range of a map.

    >>> spoken(Series(["method", "time", "value"], [["erm", "a", 0.5], ["erm", "b", 0.25], ["ft", "a", 0.75]]))
    'erm 0.5 to 0.25; ft 0.75.'
    >>> spoken(Series(["time", "tau", "value"], [["a", "a", 0.5], ["a", "b", 0.25]]))
    'From 0.25 to 0.5.'
    """
    shown = [name for name in ("value", "count") if name in series.columns]
    values = series.values(shown[0]) if shown else []
    if not values:
        return ""
    if "method" not in series.columns or "other" in series.columns:
        return f"From {min(values):.3g} to {max(values):.3g}."
    courses = _courses(series)
    said = [f"{method} {_course(course)}" for method, course in list(courses.items())[:SPOKEN]]
    if len(courses) > SPOKEN:
        said.append(f"and {len(courses) - SPOKEN} more in the table of its data")
    return f"{'; '.join(said)}."


def _courses(series: Series) -> dict[str, list[float]]:
    method, value = series.columns.index("method"), series.columns.index("value")
    found: dict[str, list[float]] = {}
    for row in series.rows:
        if row[value] is not None:
            found.setdefault(row[method], []).append(row[value])
    return found


def _course(values: list[float]) -> str:
    return " to ".join(f"{value:.3g}" for value in ([values[0], values[-1]] if len(values) > 1 else values))
