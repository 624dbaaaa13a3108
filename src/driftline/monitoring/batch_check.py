"""The check of one batch: inputs, predictions and labels against the reference, quality, challenger and alarms."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from driftline.auditing.metric import Metric
from driftline.auditing.quality_estimators import estimable, fit_estimator
from driftline.monitoring import bins, evidence
from driftline.monitoring.bins import Moved
from driftline.monitoring.diagnosis import diagnose
from driftline.monitoring.models import AnsweredRows, ModelChoice, row_scores, typed_inputs
from driftline.monitoring.reference import (
    KEPT_BATCHES,
    KEPT_ROWS,
    deployed_answers,
    draw,
    label_column,
    metric_rows,
    prediction_column,
    time_text,
)
from driftline.monitoring.result import Alarm, BatchResult, EstimatedQuality, PairedScores, mean_estimate, windowed_tas
from driftline.monitoring.rows import Rows
from driftline.monitoring.watch_file import Watch
from driftline.seeds import Seed
from driftline.types import Answers

MIN_LABELS = 20  # for a challenger
MIN_KEPT = 40  # labels of a kept batch; smaller ones join the one before
MAX_PENDING_ROWS, MAX_PENDING_BATCHES = 2_000, 60
ALARM_TEXTS = {
    "staleness": "a model trained on the latest labels is better than the deployed one",
    "quality": "the deployed model is worse than on the reference",
}


@dataclass(eq=False)
class BatchCheck:
    """A check of one batch. `run` returns the watch after it, and what was found."""

    watch: Watch
    metric: Metric
    rows: Rows | None
    """New rows."""
    late: AnsweredRows | None
    """Rows of earlier batches whose labels came with this one."""
    seed: Seed
    notes: list[str] = field(default_factory=list)

    def run(self, name: str, fingerprint: str) -> tuple[Watch, BatchResult]:
        """Check the batch."""
        new, known = (None, None) if self.rows is None else self._deployed(self.rows)
        parts = [part for part in (self.late, new and new[np.flatnonzero(self._is_known(new.rows))]) if part]
        labeled = AnsweredRows.concat(parts) if parts else None
        shown = self.rows if self.rows is not None else labeled.rows if labeled else None
        assert shown is not None  # a batch has rows or labels
        result = BatchResult(
            number=len(self.watch.history),
            name=name,
            checked=datetime.now(UTC).isoformat(timespec="seconds"),
            fingerprint=fingerprint,
            rows=0 if self.rows is None else len(self.rows),
            first=time_text(shown.time[0]),
            last=time_text(shown.time[-1]),
            labeled=0 if labeled is None else len(labeled),
        )
        if new is not None and known is not None:
            result = replace(self._compare(result, new), estimated=self._estimate(new, known))
            self._wait_for_labels(new)
        if labeled is not None:
            result = self._evaluate(result, labeled)
        return self.watch, replace(result, notes=(*result.notes, *self.notes))

    def _is_known(self, rows: Rows) -> np.ndarray:
        """Return which labels of the batch are known at the time of its last row."""
        return rows.has_label(rows.time[-1])

    def _deployed(self, new: Rows) -> tuple[AnsweredRows, AnsweredRows]:
        """Answer new rows, and the latest ones with labels that did not train the deployed model."""
        watch = self.watch
        latest = [watch.held_out, *watch.kept[len(watch.kept) - watch.new :]][-2:]
        rows = Rows.concat([*latest, new])
        answers = deployed_answers(rows) if watch.columns.is_logged else watch.model.answers(watch.training, rows)
        split = np.arange(len(rows)) < len(rows) - len(new)
        return AnsweredRows(rows, answers)[~split], AnsweredRows(rows, answers)[split]

    def _compare(self, result: BatchResult, new: AnsweredRows) -> BatchResult:
        """Compare inputs and predictions with the reference; alarm if something moved in two batches in a row."""
        reference, columns = self.watch.reference, self.watch.columns
        inputs = typed_inputs(new.rows.inputs, columns)
        tests = len(reference.inputs)
        moved = tuple(bins.compare(name, known, inputs[name], tests) for name, known in reference.inputs.items())
        predictions = bins.compare("predictions", reference.predictions, prediction_column(new.answers, columns), 1)
        before = next((one for one in reversed(self.watch.history) if one.rows), None)
        again = {one.name for one in before.moved_inputs} if before else set()
        alarms = []
        if still := [one.name for one in moved if one.moved and one.name in again]:
            alarms.append(Alarm("inputs", result.first, f"{', '.join(still)} moved in two batches in a row"))
        if _twice(predictions, before.predictions if before else None):
            alarms.append(Alarm("predictions", result.first, "predictions moved in two batches in a row"))
        return replace(result, inputs=moved, predictions=predictions, alarms=(*result.alarms, *alarms))

    def _estimate(self, new: AnsweredRows, known: AnsweredRows) -> EstimatedQuality | None:
        """Estimate the score on new rows from rows with labels."""
        columns = self.watch.columns
        is_class = columns.labels is not None
        if estimable(self.metric, is_class) is not self.metric or (is_class and new.answers.scores is None):
            return None
        y = known.rows.y.astype(np.int64) if is_class else known.rows.y
        inputs = typed_inputs(known.rows.inputs, columns)
        estimator = fit_estimator(self.metric, inputs, known.answers, y, self.seed.child("estimate"))
        value = estimator.estimate(typed_inputs(new.rows.inputs, columns), new.answers)
        scored = [one for one in self.watch.history if one.quality is not None and one.rows]
        return EstimatedQuality(value, len(new), *_estimate_errors(scored))

    def _wait_for_labels(self, new: AnsweredRows) -> None:
        """Keep rows without labels until these come or are known."""
        unknown = ~self._is_known(new.rows)
        lost = unknown & np.isnan(new.rows.y) & (self.watch.columns.id is None)
        if lost.any():
            self.notes.append(
                f"{int(lost.sum()):,} rows have no label; without an id column, labels cannot be added later"
            )
        waiting = new[np.flatnonzero(unknown & ~lost)]
        if not len(waiting):
            return
        chosen = np.arange(len(waiting))
        if len(waiting) > MAX_PENDING_ROWS:
            chosen = np.sort(self.seed.child("pending").numpy().choice(len(waiting), MAX_PENDING_ROWS, replace=False))
        pending = (*self.watch.pending, waiting[chosen])
        if len(pending) > MAX_PENDING_BATCHES:
            self.notes.append(f"labels of the oldest batch never came; it is dropped ({len(pending[0]):,} rows)")
        self.watch = replace(self.watch, pending=pending[-MAX_PENDING_BATCHES:])

    def _evaluate(self, result: BatchResult, labeled: AnsweredRows) -> BatchResult:
        """Score the deployed model and a challenger on the labels that came."""
        columns, history = self.watch.columns, self.watch.history
        before = next((one for one in reversed(history) if one.labels is not None), None)
        labels = bins.compare("labels", self.watch.reference.labels, label_column(labeled.rows.y, columns), 1)
        if _twice(labels, before.labels if before else None):
            alarm = Alarm("labels", result.first, "labels moved in two batches in a row")
            result = replace(result, alarms=(*result.alarms, alarm))
        if columns.labels is not None and (unknown := int((labeled.rows.y < 0).sum())):
            self.notes.append(f"{unknown:,} labels are classes that the reference does not have; no score counts them")
            labeled = labeled[np.flatnonzero(labeled.rows.y >= 0)]
        if not len(labeled):
            return replace(result, labels=labels)
        values = metric_rows(self.metric, labeled.rows.y, labeled.answers, columns)
        result = replace(result, labels=labels, quality=mean_estimate(values))
        result = self._challenge(result, labeled)
        self._keep(labeled.rows)
        if any(alarm.kind in ALARM_TEXTS for alarm in result.alarms):
            result = replace(result, diagnosis=diagnose(self.watch.kept, self.watch.model, self.metric))
        return result

    def _challenge(self, result: BatchResult, labeled: AnsweredRows) -> BatchResult:
        """Compare the deployed model with one of the latest labels, and with the reference, row by row."""
        columns, y = self.watch.columns, labeled.rows.y
        weights = np.array(self.watch.reference.weights)
        deployed = row_scores(labeled.answers, y, columns, weights)
        advantages = {"quality": self.watch.reference.lowest_score - deployed}
        answers = self._challenger(labeled.rows)
        if answers is not None and answers.scores is None and labeled.answers.scores is not None:
            self.notes.append("the challenger gives no probabilities, and the deployed model does; it is left out")
            answers = None
        if answers is not None:
            answers = answers if labeled.answers.scores is not None else Answers(answers.prediction)
            advantages["staleness"] = row_scores(answers, y, columns, weights) - deployed
            correct = [columns.task.correct(one.prediction, y) for one in (labeled.answers, answers)]
            paired = PairedScores.measure(*correct)
            earlier = [one.paired for one in self.watch.history if one.paired is not None]
            result = replace(
                result,
                challenger=mean_estimate(metric_rows(self.metric, y, answers, columns)),
                paired=paired,
                tas=windowed_tas([*earlier, paired]),
            )
        collected, alarms = dict(self.watch.evidence), []
        for question, advantage in advantages.items():
            collected[question], row = evidence.update(collected[question], advantage)
            if row is not None:
                at = time_text(labeled.rows.time[row])
                alarms.append(Alarm(question, at, f"{ALARM_TEXTS[question]} (evidence complete at {at})"))
        self.watch = replace(self.watch, evidence=collected)
        found = {question: float(values.mean()) for question, values in collected.items()}
        return replace(result, evidence=found, alarms=(*result.alarms, *alarms))

    def _challenger(self, rows: Rows) -> Answers | None:
        """Return answers of models of the other half of these rows and of the last two kept batches."""
        earlier = list(self.watch.kept[-2:])
        halves = [np.concatenate([*(part.y for part in earlier), half]) for half in (rows.y[::2], rows.y[1::2])]
        if len(rows) < MIN_LABELS or any(len(np.unique(half)) < 2 for half in halves):
            self.notes.append(
                f"{len(rows):,} labels are too few to train a challenger; at least {MIN_LABELS} are needed"
            )
            return None
        model: ModelChoice = self.watch.model
        return model.held_out_answers(rows, earlier)

    def _keep(self, rows: Rows) -> None:
        kept = self.watch.kept
        if len(kept[-1]) < MIN_KEPT:
            kept, rows = kept[:-1], Rows.concat([kept[-1], rows])
        kept = (*kept, draw(rows, KEPT_ROWS, self.seed.child("kept")))
        new = min(self.watch.new + 1, KEPT_BATCHES)
        self.watch = replace(self.watch, kept=kept[-KEPT_BATCHES:], new=new)


def _estimate_errors(scored: list[BatchResult]) -> tuple[float | None, float | None]:
    """Return the mean errors of estimates and of the last score carried forward, in batches that have both."""
    estimates, carried = [], []
    for before, now in pairwise(scored):
        if now.estimated is not None and now.quality is not None and before.quality is not None:
            estimates.append(abs(now.estimated.value - now.quality.value))
            carried.append(abs(before.quality.value - now.quality.value))
    return (float(np.mean(estimates)), float(np.mean(carried))) if estimates else (None, None)


def _twice(now: Moved, before: Moved | None) -> bool:
    return now.moved and before is not None and before.moved
