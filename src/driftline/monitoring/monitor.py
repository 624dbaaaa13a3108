"""A monitor: fitted once on a reference, it checks each new batch at a constant cost.

Labels may come with a batch or later, matched by the id of their rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock
from threadpoolctl import threadpool_limits

from driftline.auditing.metric import Metric
from driftline.auditing.options import DEFAULT_MODEL, AuditOptions
from driftline.errors import UserError
from driftline.io.atomic import write_bytes
from driftline.monitoring import watch_file
from driftline.monitoring.batch_check import BatchCheck
from driftline.monitoring.models import AnsweredRows, ModelChoice
from driftline.monitoring.reference import choose_metric, fit_watch, read_reference
from driftline.monitoring.result import BatchResult, score_text
from driftline.monitoring.rows import Columns, label_times, parse_ids, parse_labels, read_batch, read_rows
from driftline.monitoring.watch_file import Watch
from driftline.seeds import Seed


class Monitor:
    """Watches a deployed model.

    >>> from driftline.auditing.examples import table
    >>> rows = table(rows=600)
    >>> monitor = Monitor.fit(rows[:400], time="when", target="y", model="logistic-regression")
    >>> result = monitor.check(rows[400:500])
    >>> result.labeled, [alarm.kind for alarm in result.alarms]
    (100, [])
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    @staticmethod
    def fit(
        reference: object,
        *,
        time: str,
        target: str,
        id: str | None = None,
        model: str = DEFAULT_MODEL,
        predictions: str | None = None,
        probability: str | Sequence[str] = (),
        features: Sequence[str] | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        task: str = "auto",
        metric: str | None = None,
        label_time: str | None = None,
        delay: str | None = None,
        sep: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        date_format: str | None = None,
        seed: int = 0,
    ) -> Monitor:
        """Fit a monitor on rows with labels, on which the deployed model was trained.

        `model` is trained on them; with `predictions` or `probability`, logged answers are watched instead, and
        `model` makes the challengers. `id` names the column by which labels that come later find their rows. With
        `label_time` or `delay`, a label counts from the first batch that reaches the time at which it is known. The
        other arguments are those of `driftline.audit`; batches are read in the same way.
        """
        options = AuditOptions(
            time=time,
            target=target,
            predictions=predictions,
            probability=probability,
            features=features,
            columns=columns,
            task=task,
            label_time=label_time,
            delay=_check_delay(delay),
            sep=sep,
            encoding=encoding,
            decimal=decimal,
            date_format=date_format,
            seed=seed,
        )
        name, rows, read = read_reference(reference, id, options)
        with threadpool_limits(1):
            return Monitor(fit_watch(name, rows, ModelChoice(model, read, seed), metric))

    @staticmethod
    def load(path: str | Path) -> Monitor:
        """Read a watch file."""
        return Monitor(watch_file.read(Path(path)))

    def save(self, path: str | Path) -> None:
        """Write the watch file."""
        watch_file.write(self.watch, Path(path))

    def __repr__(self) -> str:
        watch, metric = self.watch, self.metric
        reference, quality = watch.reference, watch.reference.quality
        logged = watch.columns.prediction or ", ".join(name for name, _ in watch.columns.probabilities)
        watched = f"predictions in {logged}" if logged else f"model {watch.model.name}"
        return (
            f"Monitor of {reference.name}: {reference.rows:,} rows, {reference.first} to {reference.last}; {watched}; "
            f"{metric.title} {score_text(metric, quality)} on held-out rows; "
            f"batches checked: {len(self.history)}"
        )

    def write_page(self, path: str | Path) -> None:
        """Write the page: all checks so far."""
        import_module("driftline.report.figures")  # raises MissingExtra if the extra is not installed
        from driftline.monitoring.page import render

        write_bytes(Path(path), render(self).encode())

    @property
    def history(self) -> tuple[BatchResult, ...]:
        """What all checks found."""
        return self.watch.history

    @property
    def metric(self) -> Metric:
        """The metric of all scores."""
        watch = self.watch
        return choose_metric(watch.metric, watch.columns, watch.training.y, watch.has_probabilities)

    def check(self, batch: object) -> BatchResult:
        """Check a batch: rows without labels, rows with labels, or labels of earlier rows with their ids.

        Rows that were checked before change nothing.
        """
        name, table = read_batch(batch, self.watch.columns)
        if not len(table):
            raise UserError(f"{name} has no rows")
        fingerprint = _fingerprint(table)
        for earlier in self.history:
            if earlier.fingerprint == fingerprint:
                return replace(earlier, seen_before=True)
        watch, late, left, notes = _match_labels(self.watch, table, name)
        rows = None if left is None else read_rows(left, name, watch.columns)
        if rows is not None:
            watch, late = _reveal(watch, late, rows.time[-1])
        elif late is None:
            raise UserError(f"{name} has no new rows, and labels that become known later count in a later batch")
        seed = Seed(watch.model.seed).child("batch", fingerprint)
        check = BatchCheck(watch, self.metric, rows, late, seed, notes)
        with threadpool_limits(1):
            watch, result = check.run(name, fingerprint)
        self.watch = replace(watch, history=(*watch.history, result))
        return result


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Let one process at a time use a watch file, if there is one."""
    with FileLock(f"{path}.lock") if Path(path).is_file() else nullcontext():
        yield


def _match_labels(
    watch: Watch, table: pd.DataFrame, name: str
) -> tuple[Watch, AnsweredRows | None, pd.DataFrame | None, list[str]]:
    """Give labels to the rows that wait for them.

    Return the watch, the rows whose labels came, the rest of the table (None if nothing is left), and notes. A file of
    labels alone has labels that are known; those of a table of rows may have to wait until their time.
    """
    columns = watch.columns
    if columns.id is None or not {columns.id, columns.target} <= set(table.columns):
        return watch, None, table, []
    known = table[table[columns.target].notna()]
    ids = pd.Index(parse_ids(known[columns.id], name))
    labels_only = set(columns.kinds).isdisjoint(table.columns)
    found: list[AnsweredRows] = []
    pending: list[AnsweredRows] = []
    matched: set[str] = set()
    for part in watch.pending:
        assert part.rows.id is not None
        at = ids.get_indexer(part.rows.id)
        answered = np.flatnonzero(at >= 0)
        if len(answered):
            rows = _with_labels(part[answered], known.iloc[at[answered]], columns)
            (found if labels_only or rows.rows.known is None else pending).append(rows)
            matched |= set(part.rows.id[answered])
        if len(answered) < len(part):
            pending.append(part[np.flatnonzero(at < 0)])
    late = AnsweredRows.concat(found) if found else None
    left = table[~table[columns.id].astype(str).isin(matched)]
    notes = []
    if labels_only:
        if late is None:
            raise UserError(
                f"no row waits for a label of {name}, and it has no features; is '{columns.id}' the id column?"
            )
        if len(left):
            notes.append(f"{len(left):,} labels belong to rows that are not kept")
        left = left.iloc[:0]
    return replace(watch, pending=tuple(pending)), late, left if len(left) else None, notes


def _with_labels(part: AnsweredRows, table: pd.DataFrame, columns: Columns) -> AnsweredRows:
    """Return rows with their labels, and when these are known."""
    y, known = parse_labels(table[columns.target], columns), label_times(table, part.rows.time, columns)
    return AnsweredRows(replace(part.rows, y=y, known=known), part.answers)


def _reveal(watch: Watch, late: AnsweredRows | None, now: object) -> tuple[Watch, AnsweredRows | None]:
    """Add the waiting rows whose labels are known by now to those whose labels came."""
    found, pending = [late] if late is not None else [], []
    for part in watch.pending:
        known = part.rows.has_label(now)
        if known.any():
            found.append(part[np.flatnonzero(known)])
        if not known.all():
            pending.append(part[np.flatnonzero(~known)])
    return replace(watch, pending=tuple(pending)), AnsweredRows.concat(found) if found else None


def _fingerprint(table: pd.DataFrame) -> str:
    digest = hashlib.sha256(repr(list(table.columns)).encode())
    digest.update(pd.util.hash_pandas_object(table.astype(str), index=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]


def _check_delay(delay: str | None) -> str | int:
    """Return the delay of labels; refuse a number of periods."""
    if delay is not None and delay.strip().isdecimal():
        raise UserError(f"delay '{delay}': a monitor has no periods; give a time such as 12h, 60d or 8w")
    return 0 if delay is None else delay
