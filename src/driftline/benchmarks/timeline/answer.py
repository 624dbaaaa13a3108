"""The answer of timeline: how long a model stays good, and how far behind it falls."""

from __future__ import annotations

from driftline.benchmarks.answer import (
    Answer,
    BigNumber,
    Dots,
    Evidence,
    OldAndNew,
    about,
    best_method,
    count,
    default_answer,
    interval,
    is_gain,
    is_loss,
    paired,
    source_line,
    value_text,
)

PRIMARY = (("ood", "mean"), ("fix-ood", "mean"), ("average-accuracy", "mean"))
HORIZON, TAS = ("sh", "mean"), ("tas", "mean")
LATER, NOW = ("fix-ood", "mean"), ("fix-id", "mean")


def answer(results: Evidence) -> Answer | None:
    """Return how long the best method's model stays good, or what training up to a date loses later."""
    if results.scores(*LATER):
        return _fixed(results)
    horizons = results.scores(*HORIZON)
    if not results.scores(*PRIMARY[0]) or not horizons:
        return default_answer(results, PRIMARY)
    method = best_method(results, PRIMARY[0])
    if method not in horizons:
        return default_answer(results, PRIMARY)
    horizon, unit = horizons[method], _unit(results)
    at, gap = _largest_gap(results, method)
    length = f"{about(horizon.value, unit)}."
    if at is None:
        text = f"{length} A later gap to a new model is not certain yet."
    else:
        text = f"{length} After {count(results.times.index(at))}, a model left alone is {gap} points behind."
    share = f"{100 * results.options.get('delta', 0.9):g}% of a new model's accuracy"
    numbers = [
        BigNumber(value_text(horizon.value, share=False), f"{unit}s", f"{interval(horizon, False)} above {share}")
    ]
    if tas := results.scores(*TAS).get(method):
        numbers.append(BigNumber(value_text(tas.value), "%", f"{interval(tas)} of a new model's accuracy (TAS)"))
    chart = OldAndNew(method, "accuracy", unit, at)
    cell = results.scores(*PRIMARY[0])[method]
    what = f"{method}: one model per {unit}, tested in all later {unit}s"
    return Answer(
        text, tuple(numbers), chart, f"Accuracy by {unit}, %", source_line(cell, what), method, at is not None
    )


def _fixed(results: Evidence) -> Answer | None:
    """Return the loss after the date up to which the model was trained."""
    method = best_method(results, LATER)
    later, now = results.by_seed(*LATER), results.by_seed(*NOW)
    cell, since = results.scores(*LATER)[method], results.options.get("split") or "the split"
    if method not in now:
        return default_answer(results, (LATER,))
    loss = paired(later[method], now[method])
    if is_loss(loss):
        text = f"Trained up to {since}, even the best method is worse in later periods."
    elif is_gain(loss):
        text = f"Trained up to {since}, {method} does not lose accuracy later."
    else:
        text = f"Not certain yet that accuracy falls after {since}."
    number = BigNumber(value_text(cell.value), "%", f"{interval(cell)} in later periods")
    lost = BigNumber(value_text(loss.value), "points", f"{interval(loss)} against the training periods")
    certain = is_loss(loss) or is_gain(loss)
    return Answer(text, (number, lost), Dots(LATER), "Accuracy in later periods, %", source_line(cell), method, certain)


def _largest_gap(results: Evidence, method: str) -> tuple[str | None, int]:
    """Return when the first model is furthest behind the model of that time, of the times at which that is certain."""
    grid, times = results.grid("accuracy", method), results.times
    first = next((time for time in times if (time, time) in grid), None)
    gaps = {
        time: paired(grid[time, time], grid[first, time])
        for time in times
        if first is not None and time != first and (time, time) in grid and (first, time) in grid
    }
    certain = {time: gap for time, gap in gaps.items() if is_gain(gap)}
    if not certain:
        return None, 0
    at = max(certain, key=lambda time: certain[time].value)
    return at, round(100 * certain[at].value)


def _unit(results: Evidence) -> str:
    """Return the length of a period."""
    period = results.options.get("period")
    return period if period in ("day", "week", "month", "quarter", "year", "decade") else "period"
