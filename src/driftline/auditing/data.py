"""Summary of the audited table: what was read, how it was cut, what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from driftline.auditing.checks import check_table
from driftline.auditing.matrix import Halves
from driftline.auditing.metric import Metric
from driftline.auditing.table import AuditTable
from driftline.auditing.wording import PeriodNames
from driftline.data.formats.column_kinds import Column

MAX_NAMED = 3  # new classes


@dataclass(frozen=True)
class DataSummary:
    """What was audited."""

    name: str
    time: str
    target: str
    prediction: str | None
    rows: int
    rows_used: int
    rows_per_period: tuple[int, ...]
    periods: tuple[str, ...]
    period: str
    unit: str
    """What a number of periods is counted in."""
    length: str
    """The length of a period in words; empty if its name says it."""
    task: Literal["classes", "number"]
    classes: int | None
    features: tuple[str, ...]
    columns: tuple[Column, ...]
    time_proxies: tuple[str, ...]
    """Features that identify the time or the row."""
    model: str
    label_delay: int | str
    """In periods, or in time such as 60d."""
    label_time: str | None
    """The column of the times at which labels became known."""
    seed: int
    deployed: int
    """Number of periods whose rows train the first model of a replay."""
    metrics: tuple[str, ...]
    """The first one decides."""
    metric_reason: str
    """Why it decides."""
    warnings: tuple[str, ...]
    """What is unusual about the table."""
    notes: tuple[str, ...]

    @cached_property
    def names(self) -> PeriodNames:
        """The periods in words."""
        return PeriodNames(self.periods, self.period)


def summarize(table: AuditTable, metrics: Sequence[Metric], chosen: bool, halves: Halves | None) -> DataSummary:
    """Return the summary of a table; `chosen`: whether the user chose the metric."""
    frame = table.frame
    used = tuple(map(len, table.periods))
    return DataSummary(
        name=frame.name,
        time=frame.time,
        target=frame.target,
        prediction=frame.prediction,
        rows=frame.rows,
        rows_used=sum(used),
        rows_per_period=used,
        periods=table.names,
        period=table.period,
        unit=table.unit,
        length=table.length,
        task="classes" if table.is_classification else "number",
        classes=len(frame.labels) if frame.labels is not None else None,
        features=frame.features,
        columns=frame.columns,
        time_proxies=frame.time_proxies,
        model=table.model_name,
        label_delay=frame.label_delay or table.delay,
        label_time=frame.label_time,
        seed=table.seed.value,
        deployed=table.deployed,
        metrics=tuple(metric.name for metric in metrics),
        metric_reason="chosen" if chosen else _reason(metrics[0]),
        warnings=(*check_table(frame), *_single_class(table), *_new_classes(table)),
        notes=(*frame.notes, *_notes(table, sum(used), halves)),
    )


def _single_class(table: AuditTable) -> list[str]:
    if not table.is_classification:
        return []
    alone = [name for name, rows in zip(table.names, table.periods, strict=True) if len(np.unique(rows.y)) == 1]
    if not alone:
        return []
    verb, first = "has" if len(alone) == 1 else "have", PeriodNames(table.names, table.period).noun(alone[0])
    return [
        f"{len(alone)} of {len(table.names)} periods {verb} rows of one class only, such as {first}: a model cannot "
        "learn from such a period, and its AUC counts as 0.5; longer periods help"
    ]


def _new_classes(table: AuditTable) -> list[str]:
    """Warn about classes that the first model cannot answer, since none of its training rows has them."""
    labels = table.frame.labels
    if labels is None or table.is_log:
        return []
    trained = np.concatenate([rows.y for rows in table.periods[: table.deployed]])
    names, notes = PeriodNames(table.names, table.period), []
    for k in np.setdiff1d(np.concatenate([rows.y for rows in table.periods]), trained):
        first = next(name for name, rows in zip(table.names, table.periods, strict=True) if (rows.y == k).any())
        notes.append(f"class '{labels[k]}' first occurs {names.within(first)}: no model trained before can answer it")
    if len(notes) > MAX_NAMED:
        return [*notes[:MAX_NAMED], f"{len(notes) - MAX_NAMED} more classes first occur after the first model's rows"]
    return notes


def _reason(metric: Metric) -> str:
    """Return why a metric is the default."""
    reasons = {
        "accuracy": "the default for balanced classes",
        "auc": "the default for two unbalanced classes, where accuracy hides the rare one",
        "balanced": "the default for unbalanced classes, where accuracy hides the rare ones",
        "rmse": "the default for numbers, in the units of the target",
    }
    return reasons[metric.name]


def _notes(table: AuditTable, used: int, halves: Halves | None) -> list[str]:
    limits, total, notes = table.limits, sum(table.rows_before_limits), []
    if used < total:
        notes.append(f"{used:,} of {total:,} rows are used: at most {limits.rows:,} per period, drawn at random")
    if table.skipped:
        notes.append(f"periods left out because they have too few rows: {', '.join(table.skipped)}")
    if table.tied_boundaries:
        notes.append(
            f"{table.tied_boundaries} of {len(table.periods) - 1} boundaries between periods fall among rows of the "
            "same time, which are ordered as in the table"
        )
    if table.frame.samples.known is not None:
        notes.append(_late(table))
    if halves is not None:
        how = "at random (it has few distinct times)" if halves.random else "in ten blocks of consecutive rows, in turn"
        notes.append(f"the rows of each period are split into halves {how}")
        notes.append(
            f"for tests and sizes one model per half and period is trained on {halves.training_rows:,} rows, and "
            f"tested on the other half of each of {len(halves.names)} periods"
        )
        notes.append(
            f"policies start from a model of {table.deployed} periods; each training uses at most "
            f"{limits.training_rows:,} rows"
        )
    return notes


def _late(table: AuditTable) -> str:
    """Return by how many periods labels with times of their own are late."""
    late = sorted(known - 1 - k for k, known in enumerate(table.arrivals.known_from) if known <= len(table.periods))
    usual = f"{late[(len(late) - 1) // 2]} period(s) late (median)" if late else "after the end of the table"
    return (
        "a label is used for a period if it became known before the period's first row; half of the labels of a "
        f"period are known {usual}, and it counts as known from then on"
    )
