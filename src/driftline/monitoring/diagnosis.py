"""Diagnosis of an alarm: the audit's tests on the kept batches, with batches as periods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from driftline.auditing.aging import RELATION_Z
from driftline.auditing.cause import period_help
from driftline.auditing.feature_shift import feature_shifts
from driftline.auditing.findings import date_text, p_value
from driftline.auditing.frame import Frame
from driftline.auditing.matrix import assemble, evaluate, split_halves
from driftline.auditing.metric import Metric
from driftline.auditing.sizes import measure_sizes
from driftline.auditing.table import AuditTable, Limits
from driftline.auditing.verdict import MIN_PERIODS, Verdict, judge
from driftline.monitoring.models import ModelChoice, typed_inputs
from driftline.monitoring.rows import Rows
from driftline.seeds import Seed
from driftline.types import Samples


def diagnose(batches: Sequence[Rows], model: ModelChoice, metric: Metric) -> str | None:
    """Return what changed between batches with labels, in one sentence; None if there are too few."""
    known = [part[part.y >= 0] if model.columns.labels is not None else part for part in batches]
    known = [part for part in known if _can_split(part)]
    if len(known) < MIN_PERIODS:
        return None
    table = _audit_table(known, model)
    halves = split_halves(table)
    losses = [evaluate(table, halves, (metric,), half, t) for half in (0, 1) for t in range(len(halves.names))]
    matrix = assemble(table, halves, (metric,), losses)
    sizes = measure_sizes(metric, matrix.scores[metric.name], matrix.baselines[metric.name])
    verdict = judge(matrix, metric, sizes.above.low > 0, table.seed.child("tests"))
    moved = verdict.aged and any(feature.changed for feature in feature_shifts(table))
    only_inputs = moved and period_help(table, halves) <= RELATION_Z
    return _sentence(verdict, halves.names, only_inputs, model.columns.labels is None)


def _can_split(rows: Rows) -> bool:
    """Return whether each half of these rows has two classes or two numbers."""
    return all(len(np.unique(half)) > 1 for half in np.array_split(rows.y, 2))


def _audit_table(batches: Sequence[Rows], model: ModelChoice) -> AuditTable:
    columns, pool = model.columns, Rows.concat(batches)
    inputs = typed_inputs(pool.inputs, columns)
    y = pool.y if columns.labels is None else pool.y.astype(np.int64)
    samples = Samples(x=np.arange(len(pool)), y=y, id=np.arange(len(pool)), time=pool.time)
    frame = Frame(
        name="kept batches",
        time=columns.time,
        target=columns.target,
        prediction=None,
        table=pd.DataFrame(inputs),
        inputs=inputs,
        columns=(),
        samples=samples,
        task=columns.task,
        labels=columns.label_values,
        logged_predictions=None,
        notes=(),
    )
    ends = np.cumsum([len(part) for part in batches])
    periods = tuple(samples[np.arange(end - len(part), end)] for part, end in zip(batches, ends, strict=True))
    sizes = tuple(map(len, batches))
    names = tuple(f"batch {k}" for k in range(len(batches)))
    return AuditTable(
        frame,
        "each",
        names,
        periods,
        model.name,
        0,
        Seed(model.seed),
        Limits(),
        sizes,
        (),
        tied_boundaries=0,
        deployed=1,
    )


def _sentence(verdict: Verdict, names: Sequence[str], only_inputs: bool, is_number: bool) -> str | None:
    if only_inputs:
        return (
            "Later inputs are new to older models; at equal inputs no change was found. Retrain on rows that cover "
            "these inputs."
        )
    if verdict.aged:
        order = verdict.recalibrated.order
        p = p_value(max(verdict.recalibrated.difference, 1.0 if order is None else order.p))
        if verdict.dates:
            dates = ", ".join(date_text(date) for date in verdict.dates)
            return f"The relation between inputs and target changed: {dates} ({p}). Retrain on the rows since then."
        return f"The relation between inputs and target changes over time, without a single date ({p})."
    if verdict.miscalibrated and is_number:
        return "Level or scale of the target moved: predictions are off; a changed relation was not found. Recalibrate."
    if verdict.miscalibrated:
        return "Probabilities are off; a changed relation was not found. Recalibrate."
    if verdict.is_odd and verdict.odd.index == len(names) - 1:
        return "The latest batch is unlike all others: a change, or a problem of its data."
    if verdict.harder:
        return "The data got harder for new models too."
    return None
