"""The steps of one audit: independent tasks in parallel, then what depends on the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from driftline.auditing.aging import Aging
from driftline.auditing.alarms import replay_alarms, row_errors, start_of_replay, watches
from driftline.auditing.answers import Horizons
from driftline.auditing.arrivals import Training
from driftline.auditing.calibration_over_time import Calibration, measure_calibration
from driftline.auditing.cause import period_help
from driftline.auditing.data import summarize
from driftline.auditing.detectors import changes, log_alarms, score_detectors
from driftline.auditing.feature_shift import feature_shifts
from driftline.auditing.horizons import age_curve, drift_horizon, stability_horizon
from driftline.auditing.label_shift import LabelShift, measure_label_shift
from driftline.auditing.log_quality import logged_answers, measure_log
from driftline.auditing.matrix import Halves, LossMatrix, assemble, evaluate, split_halves
from driftline.auditing.metric import Metric
from driftline.auditing.options import OnProgress
from driftline.auditing.policies import TrainingNoise, compare_policies, gain_parts
from driftline.auditing.recommendation import Costs, Policies, recommend
from driftline.auditing.replay import (
    NEVER,
    RECALIBRATE,
    Replay,
    recalibrated_replay,
    same_phase,
    schedule_replay,
    schedules,
    train_and_answer,
)
from driftline.auditing.result import AuditResult, Matrix, Provenance
from driftline.auditing.shift import DomainClassifier, Shift, domain_classifier, first_model_scores, measure_shift
from driftline.auditing.sizes import MIN_SKILL, Sizes, loss_across, loss_per_period, measure_sizes, skill_matrix
from driftline.auditing.slices import measure_slices
from driftline.auditing.table import AuditTable
from driftline.auditing.tasks import Key, Task, TaskRunner
from driftline.auditing.unlabeled import answer_newest, estimate_quality
from driftline.auditing.verdict import Verdict, judge
from driftline.report.format import count_of
from driftline.types import Answers


class Pipeline:
    """The steps of one audit: first all that is independent, then what depends on the verdict."""

    def __init__(
        self,
        table: AuditTable,
        metrics: tuple[Metric, ...],
        chosen: bool,
        runner: TaskRunner,
        on_progress: OnProgress,
        quick: bool = False,
    ) -> None:
        self.table, self.metrics, self.chosen, self.quick = table, metrics, chosen, quick
        self.runner, self.on_progress = runner, on_progress
        self.done: dict[Key, Any] = {}
        self.finished = 0

    def audit_model(self, provenance: Provenance, delta: float, costs: Costs) -> AuditResult:
        """Audit a model that can be trained."""
        table, metric = self.table, self.metrics[0]
        table.new_model()  # raise an error about the model before any work is done
        halves, plans = split_halves(table), schedules(table)
        matrix_tasks = self._matrix_tasks(halves)
        self.compute([*self._alarm_tasks(), *matrix_tasks, *self._training_tasks(plans), *self._shift_tasks()])
        matrix = assemble(table, halves, self.metrics, [self.done[task.key] for task in matrix_tasks])
        sizes = tuple(measure_sizes(m, matrix.scores[m.name], matrix.baselines[m.name]) for m in self.metrics)
        verdict = judge(matrix, metric, sizes[0].above.low > 0, table.seed.child("tests"))
        cycle = verdict.shape.cycle if verdict.shape is not None and verdict.shape.kind == "recurring" else None
        if cycle is not None and halves.pieces == 1:
            plans["same-season"] = same_phase(table, cycle)
        cause = [Task(("cause",), "relation or inputs", partial(period_help, table, halves, cycle))]
        newest = Task(("newest",), "rows without labels", partial(answer_newest, table))
        self.compute([*(cause if verdict.aged else []), newest, *self._training_tasks(plans)])
        replays = self._replays(plans)
        labels = measure_label_shift(table, replays[NEVER].answers)
        calibration = measure_calibration(table, replays[NEVER].answers)
        shift = self._shift(matrix.ids, matrix.first_errors)
        aging = self._aging(matrix, verdict, labels, sizes[0], calibration, shift)
        policies = self._policies(matrix, replays, verdict, costs)
        changed = changes(verdict.shape if verdict.aged else None, halves.pieces)
        return AuditResult(
            provenance=provenance,
            data=summarize(table, self.metrics, self.chosen, halves),
            label_shift=labels,
            aging=aging,
            sizes=sizes,
            matrix=Matrix.of(matrix, metric),
            horizons=self._horizons(matrix, delta),
            slices=measure_slices(table, matrix, metric, verdict),
            calibration=calibration,
            estimated_quality=estimate_quality(table, metric, replays[NEVER].answers, self.done["newest",], verdict),
            shift=shift,
            policies=policies,
            detectors=score_detectors(replays, policies, changed, table.first_replayed),
            skipped=_skipped(table, self.quick),
        )

    def _matrix_tasks(self, halves: Halves) -> list[Task]:
        return [
            Task(
                ("evaluate", half, t),
                f"model of {name}, evaluated in all periods",
                partial(evaluate, self.table, halves, self.metrics, half, t),
            )
            for half in (0, 1)
            for t, name in enumerate(halves.names)
        ]

    def audit_log(self, provenance: Provenance) -> AuditResult:
        """Audit logged predictions."""
        table = self.table
        answers = logged_answers(table)
        self.compute(self._shift_tasks())
        errors = [row_errors(table, answers[k], rows) for k, rows in enumerate(table.periods)]
        squares = np.concatenate(
            [
                answers[k].prediction != rows.y if table.is_classification else (answers[k].prediction - rows.y) ** 2
                for k, rows in enumerate(table.periods)
            ]
        ).astype(float)
        return AuditResult(
            provenance=provenance,
            data=summarize(table, self.metrics, self.chosen, None),
            label_shift=measure_label_shift(table, answers),
            log=measure_log(table, self.metrics[0], answers),
            shift=self._shift(np.concatenate([rows.id for rows in table.periods]), squares),
            calibration=measure_calibration(table, answers),
            estimated_quality=estimate_quality(table, self.metrics[0], answers, {}, None),
            log_alarms=log_alarms(table, errors),
            skipped=_skipped(table),
        )

    def compute(self, tasks: Sequence[Task]) -> None:
        """Run tasks in parallel, and keep their results by key; those that are done already are left out."""
        tasks = [task for task in tasks if task.key not in self.done]
        total = self.finished + len(tasks)
        if not self.finished:
            self.on_progress(_opening(self.table), 0, total)

        def on_done(description: str, done: int) -> None:
            self.on_progress(description, self.finished + done, total)

        results = self.runner.run(tasks, on_done)
        self.done |= {task.key: result for task, result in zip(tasks, results, strict=True)}
        self.finished = total

    def _alarm_tasks(self) -> list[Task]:
        if self.quick:
            return []
        makers = watches(self.table, find_spec("river") is not None)
        with threadpool_limits(1):
            start = start_of_replay(self.table)
        return [
            Task(
                ("alarm", name), f"retraining policy replayed: {name}", partial(replay_alarms, self.table, make, start)
            )
            for name, make in makers.items()
        ]

    def _training_tasks(self, plans: Mapping[str, Mapping[int, Training]]) -> list[Task]:
        needed: dict[Training, set[int]] = {}
        for plan in plans.values():
            for k, training in plan.items():
                needed.setdefault(training, set()).add(k)
        return [
            Task(
                ("train", training, tuple(sorted(predicted))),
                f"retraining policy replayed: model of {count_of(len(training.periods), 'period')}",
                partial(train_and_answer, self.table, training, sorted(predicted)),
            )
            for training, predicted in sorted(needed.items(), key=lambda item: -len(item[0].periods))
        ]

    def _shift_tasks(self) -> list[Task]:
        table = self.table
        if not table.frame.features:
            return []
        tasks = [
            Task(
                ("inputs", name), f"inputs compared with the first period: {name}", partial(domain_classifier, table, k)
            )
            for k, name in enumerate(table.names)
            if k and (not self.quick or k == len(table.names) - 1)
        ]
        return [*tasks, Task(("features",), "distances of each feature", partial(feature_shifts, table))]

    def _replays(self, plans: Mapping[str, dict[int, Training]]) -> dict[str, Replay]:
        fitted: dict[Training, dict[int, Answers]] = {}
        for key, answers in self.done.items():
            if key[0] == "train":
                fitted.setdefault(key[1], {}).update(answers)
        replays = {name: schedule_replay(self.table, plan, fitted) for name, plan in plans.items()}
        if self.table.has_probabilities or not self.table.is_classification:
            replays[RECALIBRATE] = recalibrated_replay(self.table, replays[NEVER])
        return replays | {key[1]: replay for key, replay in self.done.items() if key[0] == "alarm"}

    def _aging(
        self,
        matrix: LossMatrix,
        verdict: Verdict,
        labels: LabelShift,
        sizes: Sizes,
        calibration: Calibration | None,
        shift: Shift | None,
    ) -> Aging:
        table, metric = self.table, self.metrics[0]
        scores, halves = matrix.scores[metric.name], matrix.halves
        shape, better = verdict.shape, metric.higher_is_better
        ends = [0, *(shape.boundaries if shape else ()), matrix.size]
        moved = labels.labels
        return Aging(
            verdict=verdict,
            sizes=sizes,
            periods=halves.names,
            pieces=halves.pieces,
            unit=table.unit,
            training_rows=halves.training_rows,
            cause_z=self.done.get(("cause",)),
            inputs_moved=shift is not None and shift.inputs_moved,
            loss_since=tuple(
                loss_across(scores, ends[k], better, ends[k - 1], ends[k + 1]) for k in range(1, len(ends) - 1)
            ),
            loss_per_period=loss_per_period(scores, better),
            base_rates=(moved.first, moved.last) if moved.significant else None,
            base_rate_class=moved.moved,
            has_probabilities=table.has_probabilities or not table.is_classification,
            is_number=not table.is_classification,
            slope=calibration.off[-1].slope if calibration is not None and calibration.off else None,
        )

    def _policies(self, matrix: LossMatrix, replays: Mapping[str, Replay], verdict: Verdict, costs: Costs) -> Policies:
        metric, halves = self.metrics[0], matrix.halves
        noise = TrainingNoise(2 * matrix.scores[metric.name].training_variance, halves.training_rows)
        results = compare_policies(self.table, self.metrics, replays, noise)
        parts = gain_parts(self.table, metric, replays, noise)
        last_is_odd = verdict.is_odd and verdict.odd.index == matrix.size - 1
        return recommend(results, verdict, metric, costs, parts, last_is_odd)

    def _horizons(self, matrix: LossMatrix, delta: float) -> Horizons | None:
        metric = self.metrics[0]
        scores, seed = matrix.scores[metric.name], self.table.seed.child("horizons")
        skill = scores if metric.higher_is_better else skill_matrix(scores, matrix.baselines[metric.name])
        if skill.estimate(np.eye(skill.size) / skill.size).low <= MIN_SKILL:
            return None
        return Horizons(
            sh=stability_horizon(skill, delta, seed.child("sh").numpy()),
            dh=drift_horizon(skill, seed.child("dh").numpy()),
            curve=age_curve(skill, delta),
            delta=delta,
        )

    def _shift(self, ids: np.ndarray, errors: np.ndarray) -> Shift | None:
        if ("features",) not in self.done:
            return None
        classifiers: dict[str, DomainClassifier] = {
            key[1]: found for key, found in self.done.items() if key[0] == "inputs"
        }
        correct = first_model_scores(self.table, ids, errors)
        return measure_shift(self.table, correct, self.done["features",], classifiers)


def _opening(table: AuditTable) -> str:
    audited = "the logged predictions" if table.is_log else f"model {table.model_name}"
    rows, names = table.frame.rows, table.names
    return f"{table.frame.name}: {rows:,} rows in {len(names)} periods, {names[0]} to {names[-1]}; {audited}"


def _skipped(table: AuditTable, quick: bool = False) -> tuple[str, ...]:
    """Return what could not be computed, and why."""
    notes = []
    if quick:
        return (
            f"This is a quick audit of at most {table.limits.rows:,} rows per period: policies that retrain on an "
            "alarm and their detectors were left out, all inputs together are compared in the last period only, and "
            "intervals are wide; without --quick all is computed",
        )
    if table.is_log:
        notes.append("A log of predictions has no model to retrain, so aging is not measured and no policy is replayed")
    if find_spec("river") is None:
        notes.append('Drift detectors of river were not run: pip install "driftline[river]"')
    return tuple(notes)
