"""Summary of the audited table: what was read, how it was cut, what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftline.auditing.table import AuditTable
from driftline.data.formats.column_kinds import Column


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
    label_delay: int
    seed: int
    notes: tuple[str, ...]

    @property
    def metric(self) -> str:
        return "accuracy" if self.task == "classes" else "R²"


def summarize(table: AuditTable) -> DataSummary:
    """Return the summary of a table."""
    frame = table.frame
    used = tuple(len(table.rows(k)) for k in range(len(table.periods)))
    return DataSummary(
        name=frame.name,
        time=frame.time,
        target=frame.target,
        prediction=frame.prediction,
        rows=len(frame.samples),
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
        label_delay=table.delay,
        seed=table.seed.value,
        notes=(*frame.notes, *_notes(table, sum(used))),
    )


def _notes(table: AuditTable, used: int) -> list[str]:
    limits, total, notes = table.limits, sum(table.rows_before_limits), []
    if used < total:
        notes.append(f"{used:,} of {total:,} rows are used: at most {limits.rows:,} per period, drawn at random")
    if table.periods.skipped:
        notes.append(f"periods left out because they have too few rows: {', '.join(table.periods.skipped)}")
    if table.tied_boundaries:
        notes.append(
            f"{table.tied_boundaries} of {len(table.periods) - 1} boundaries between periods fall among rows of the "
            "same time, which are ordered as in the table"
        )
    held_out = "the last rows" if table.ordered_holdout else "randomly drawn rows (it has few distinct times)"
    notes.append(f"{held_out} of each period are held out to measure the quality of a new model")
    notes.append(
        f"each training uses at most {limits.training_rows:,} rows, and each model is evaluated on at most "
        f"{limits.probe_rows:,} rows per period"
    )
    return notes
