"""Estimated quality before labels come: how well it would have worked, and the newest rows without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from driftline.auditing.findings import date_text
from driftline.auditing.metric import Metric
from driftline.auditing.quality_estimators import QualityEstimator, estimable, fit_estimator
from driftline.auditing.replay import start_training, training_rows
from driftline.auditing.table import UNITS, AuditTable
from driftline.auditing.verdict import Verdict
from driftline.auditing.wording import PeriodNames
from driftline.data.formats.time_column import parse_times
from driftline.streams.timeline import period_labels
from driftline.types import Answers, Samples

MIN_LABELED = 500  # rows, from the latest periods, on which the estimator for classes is fitted
MIN_PERIODS = 3  # estimated with known labels, for a mean error
MIN_ROWS = 20  # without a label
EVER = 2**31  # all labels of the table are known before this period
Newest = Mapping[str, tuple[Samples, Answers]]
"""Rows without labels by period, and the deployed model's answers to them."""


@dataclass(frozen=True)
class EstimatedPeriod:
    """The quality of a period, estimated before its labels were known."""

    period: str
    estimated: float
    carried: float
    """The latest quality that was known then."""
    real: float | None
    """None: its labels are not known yet."""
    n: int


@dataclass(frozen=True)
class EstimatedQuality:
    """Estimates without labels of the deployed model's quality, and their error where labels are known."""

    metric: Metric
    periods: tuple[EstimatedPeriod, ...]
    """Periods with labels, each estimated from labels before it."""
    newest: tuple[EstimatedPeriod, ...]
    """Rows without labels."""
    error: float
    """Mean absolute error of the estimates where labels are known."""
    carried_error: float
    """The same of carrying the latest known value forward."""
    missed: str | None = None
    """The change that the estimates did not see, in words."""

    @property
    def is_useful(self) -> bool:
        """Whether estimates beat carrying the latest known value forward."""
        return self.error < self.carried_error


def answer_newest(table: AuditTable) -> Newest:
    """Return the rows without a target since the last period began, with the answers of the deployed model."""
    frame = table.frame
    rows = np.flatnonzero(frame.table[frame.target].isna().to_numpy())
    if not len(rows):
        return {}
    kind = "date" if table.starts.dtype.kind == "M" else "auto"
    when, _ = parse_times(frame.table[frame.time].iloc[rows], kind, frame.date_format)
    order = np.argsort(when, kind="stable")
    order = order[when[order] >= table.starts[-1]]
    if len(order) < MIN_ROWS:
        return {}
    rows, when = rows[order], when[order]
    one = f"rows since {table.names[-1]}"
    names = period_labels(when, table.period) if table.period in UNITS else np.full(len(rows), one)
    samples = Samples(x=rows, y=np.zeros(len(rows), int), id=rows, time=when)
    model = table.fit(training_rows(table, start_training(table)))
    parts = {str(name): samples[np.flatnonzero(names == name)] for name in dict.fromkeys(names)}
    return {name: (part, table.answer(model, part)) for name, part in parts.items()}


def estimate_quality(
    table: AuditTable,
    metric: Metric,
    answers: Mapping[int, Answers],
    newest: Newest,
    verdict: Verdict | None,
) -> EstimatedQuality | None:
    """Estimate each period from labels before it, and the newest rows; None if nothing can be estimated.

    `answers`: of one model, in periods that it was not trained on; `newest`: rows without labels, and answers to them.
    """
    if table.is_classification and any(a.scores is None for a in answers.values()):
        return None
    metric = estimable(metric, table.is_classification)
    periods = []
    for k in sorted(answers):
        known = [j for j in sorted(answers) if table.arrivals.known_from[j] <= k]
        if known:
            estimated = _fit(table, metric, answers, known, k).estimate(_inputs(table, table.periods[k]), answers[k])
            real, carried = (_quality(table, metric, answers, j) for j in (k, known[-1]))
            periods.append(EstimatedPeriod(table.names[k], estimated, carried, real, len(answers[k])))
    if len(periods) < MIN_PERIODS:
        return None
    last = max(answers)
    estimator = _fit(table, metric, answers, sorted(answers), EVER)
    carried = _quality(table, metric, answers, last)
    later = tuple(
        EstimatedPeriod(name, estimator.estimate(_inputs(table, rows), given), carried, None, len(given))
        for name, (rows, given) in newest.items()
        if len(given) >= MIN_ROWS
    )
    estimates, last_known, truth = np.array([(p.estimated, p.carried, p.real) for p in periods]).T
    return EstimatedQuality(
        metric=metric,
        periods=tuple(periods),
        newest=later,
        error=float(np.abs(estimates - truth).mean()),
        carried_error=float(np.abs(last_known - truth).mean()),
        missed=_missed(table, metric, periods, verdict),
    )


def _fit(
    table: AuditTable, metric: Metric, answers: Mapping[int, Answers], known: Sequence[int], before: int
) -> QualityEstimator:
    """Fit on the labels known before a period: classes on the latest ones, numbers on all."""
    chosen: list[int] = []
    for j in reversed(known):
        chosen.insert(0, j)
        if table.is_classification and sum(len(answers[i]) for i in chosen) >= MIN_LABELED:
            break
    kept = [np.flatnonzero(table.arrivals.is_known(j, before)) for j in chosen]
    rows = Samples.concat([table.periods[j][at] for j, at in zip(chosen, kept, strict=True)])
    given = Answers.concat([answers[j][at] for j, at in zip(chosen, kept, strict=True)])
    return fit_estimator(metric, _inputs(table, rows), given, rows.y, table.seed.child("estimates", before))


def _inputs(table: AuditTable, rows: Samples) -> pd.DataFrame:
    inputs: pd.DataFrame = table.frame.inputs.iloc[rows.x]
    return inputs


def _quality(table: AuditTable, metric: Metric, answers: Mapping[int, Answers], k: int) -> float:
    return float(metric.rows(table.periods[k].y, answers[k].prediction, answers[k].scores).mean())


def _missed(
    table: AuditTable, metric: Metric, periods: Sequence[EstimatedPeriod], verdict: Verdict | None
) -> str | None:
    """Return the sentence about the first dated change of which the next estimate saw less than half."""
    if verdict is None or not (verdict.aged or verdict.miscalibrated):
        return None
    for date in verdict.dates:
        first = _first_after(table.starts, date.at)
        after = next((p for p in periods if table.names.index(p.period) >= first), None)
        if after is None or after.real is None:
            continue
        change, error = abs(after.carried - after.real), abs(after.estimated - after.real)
        if change >= 0.02 * max(abs(after.carried), 1e-12) and error >= change / 2:
            return (
                f"Estimates without labels did not see the change of {date_text(date)}: estimated "
                f"{metric.text(after.estimated)}, real {metric.text(after.real)}."
            )
    return None


def _first_after(starts: np.ndarray, at: Any) -> int:
    """Return the first period of which at least three quarters lie after a time.

    >>> [_first_after(np.array([0.0, 10.0, 20.0]), at) for at in (10.0, 12.0, 15.0)]
    [1, 1, 2]
    """
    inside = int(np.searchsorted(starts, at, side="right")) - 1
    length = np.median(np.diff(starts))
    return inside + int((at - starts[inside]) > length / 4)


def estimate_sentences(quality: EstimatedQuality | None, target: str, names: PeriodNames) -> list[str]:
    """Say how good estimates without labels are, what they give for the newest rows, and what they missed."""
    if quality is None:
        return ["Not known: estimates need class probabilities, or a number as target, and four predicted periods."]
    metric, count = quality.metric, len(quality.periods)
    errors = metric.difference(quality.error), metric.difference(quality.carried_error)
    if not quality.is_useful:
        text = (
            f"Estimates without labels would be off by {errors[0]} on average over {count} periods, no better than "
            f"carrying the last known {metric.title} forward ({errors[1]}), so none is shown."
        )
        return [text, *([quality.missed] if quality.missed else [])]
    sentences = [
        f"Estimates of {metric.title} without labels are off by {errors[0]} on average over {count} periods; "
        f"carrying the last known value forward, by {errors[1]}."
    ]
    sentences += [
        f"{names.text(p.period)}: {p.n:,} rows without '{target}', estimated {metric.text(p.estimated)}."
        for p in quality.newest
    ]
    return [*sentences, quality.missed or "They assume that the relation stays, and cannot see it change."]
