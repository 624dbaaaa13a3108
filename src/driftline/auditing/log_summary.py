"""The verdict about logged predictions in one word, two sentences and four rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driftline.auditing.data import DataSummary
from driftline.auditing.findings import amount, interval, p_value
from driftline.auditing.log_quality import LogQuality, step_period
from driftline.auditing.summary import Summary, SummaryRow
from driftline.auditing.wording import DETECTORS, PeriodNames


def summarize_log(log: LogQuality, alarms: Mapping[str, Sequence[str]], data: DataSummary) -> Summary:
    """Return the verdict about logged predictions: a decline is seen, but its cause is not."""
    names = data.names
    rows = (_change(log, names), _cause(), _certainty(log), _alarms(alarms, names))
    if not log.changed:
        first = "No trend or step in the logged predictions is significant."
        return Summary("No decline", "keep", (first, _next_step(log)), rows)
    step = step_period(log)
    since = "" if step is None else f" since about {names.words[step]}"
    if log.worse:
        return Summary("Declined", "act", (f"The logged predictions got worse{since}.", _next_step(log)), rows)
    return Summary("Improved", "keep", (f"The logged predictions got better{since}.", _next_step(log)), rows)


def _next_step(log: LogQuality) -> str:
    if log.worse:
        return "Audit the model itself to see whether it aged or the data got harder."
    return "A model to train would show whether a new one does better."


def _change(log: LogQuality, names: PeriodNames) -> SummaryRow:
    metric, course = log.metric, log.course
    own, later = (f"{metric.text(e.value)} {interval(metric, e)}" for e in (log.first_own, log.first_later))
    note = f"{own} {names.within(names.names[0])}, {later} later"
    if not log.changed:
        return SummaryRow("Change", "None that is significant", "", note)
    fitted = f"from {metric.text(course.first)} to {metric.text(course.last)} (fitted)"
    return SummaryRow("Change", metric.difference(course.change, sign=True), fitted, note)


def _cause() -> SummaryRow:
    return SummaryRow("Cause", "Not known:", "a log has no new models to compare with")


def _certainty(log: LogQuality) -> SummaryRow:
    above = f"{amount(log.metric, log.above, sign=True)} against a constant answer"
    if log.above.low <= 0:
        above = f"caution: not surely better than a constant answer ({amount(log.metric, log.above, sign=True)})"
    answer = "Sure:" if log.changed else "Not certain of any change:"
    return SummaryRow("How sure", answer, f"{p_value(log.course.p)} for a trend or step", above)


def _alarms(alarms: Mapping[str, Sequence[str]], names: PeriodNames) -> SummaryRow:
    first: dict[str, list[str]] = {}
    for name, periods in alarms.items():
        if periods:
            first.setdefault(names.within(periods[0]), []).append(DETECTORS.get(name, name))
    if not first:
        return SummaryRow("Alarms", "None fired" if alarms else "Not run")
    fired = "; ".join(f"{', '.join(detectors)} {period}" for period, detectors in first.items())
    return SummaryRow("Alarms", f"{sum(map(len, first.values()))} of {len(alarms)} fired:", f"first {fired}")
