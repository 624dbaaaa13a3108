"""`driftline.audit`: does a model of a table age, since when, how much does it cost, and when to retrain it?"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from driftline import registry
from driftline.auditing.frame import Frame, read_frame
from driftline.auditing.metric import choose_metrics
from driftline.auditing.notebook_progress import notebook_progress
from driftline.auditing.options import DEFAULT_MODEL, AuditOptions, show_nothing, with_options
from driftline.auditing.pipeline import Pipeline
from driftline.auditing.recommendation import Costs
from driftline.auditing.result import AuditResult, Provenance
from driftline.auditing.sampling import Request, drawn_from
from driftline.auditing.table import WANTED_PERIODS, AuditTable, Limits, periods_until, prepare
from driftline.auditing.tasks import Kept, TaskRunner, scratch_store
from driftline.data.formats.dialect import Dialect
from driftline.data.formats.table_file import AS_RECOGNIZED
from driftline.engine.executors.config import ExecutorConfig
from driftline.errors import UserError
from driftline.io import user_code
from driftline.io.object_hash import CannotHash, ObjectHasher
from driftline.spec.keys import package_versions, sources_hash, stable_hash
from driftline.store.remote import is_url
from driftline.store.store import Store
from driftline.version import __version__

NOT_IN_KEYS = ("model", "metric", "jobs", "engine", "address", "runs")  # what does not change a result, or is hashed


@with_options(AuditOptions)
def audit(frame: object, options: AuditOptions) -> AuditResult:
    """Audit a model on a table: does it age, since when, what does it cost, and which retraining policy is best?

    `frame`: a frame of pandas or polars; the path of a CSV or Parquet file, of a folder or glob of them, or of a DuckDB
    file; or a URL. Rows of a large table are drawn, about `rows` per period. The other arguments are the flags of
    `driftline audit`. Here `model` may also be any object with `fit` and `predict`, or a class or function that makes
    one, and `metric` a function or a list.

    >>> from driftline.auditing.examples import table
    >>> result = audit(table(rows=400), time="when", target="y", model="logistic-regression", period="100 rows")
    >>> result.gate_values["periods"]
    4
    """
    read, period = read_table(frame, options)
    limits = Limits(*options.limits)
    model = DEFAULT_MODEL if options.model is None else options.model
    cut = partial(prepare, read, model, delay=options.periods_late, seed=options.seed, limits=limits)
    table = cut(period, deployed=options.deployed)
    if options.train_until is not None:
        table = cut(table.period, deployed=periods_until(table.starts, options.train_until))
    metrics = choose_metrics(options.metrics, read.task, read.samples.y, table.has_probabilities, read.labels)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    provenance = Provenance(__version__, date, _command(frame, options), read.fingerprint)
    config = ExecutorConfig(options.engine, options.jobs, options.address)  # type: ignore[arg-type]
    runner = TaskRunner(config, kept_tasks(table, options))
    display = notebook_progress() if options.on_progress is None else None
    on_progress = options.on_progress or display or show_nothing
    pipeline = Pipeline(table, metrics, bool(options.metrics), runner, on_progress, options.quick)
    if table.is_log:
        result = pipeline.audit_log(provenance)
    else:
        result = pipeline.audit_model(provenance, options.delta, Costs(options.cost_error, options.cost_retrain))
    runner.end()
    if display is not None:
        display.close()
    return result


def read_table(frame: object, options: AuditOptions) -> tuple[Frame, str]:
    """Return the rows to audit, drawn from a large table, and the period to cut them into."""
    drawn, own_times = None, options.kinds.get(options.time) == "number" or options.date_format is not None
    dialect = Dialect(options.sep, options.encoding, options.decimal)
    if frame is None and options.sql is None:
        raise UserError("there is nothing to audit: give a table, or a query with --sql")
    if isinstance(frame, str | Path | None):
        more = [name for name in (options.predictions, options.label_time) if name is not None]
        few = options.features is not None and not options.probabilities
        columns = (*(options.features or ()), *more) if few else None
        request = Request(
            options.time, options.target, columns, options.period, options.limits[0], options.seed, dialect, own_times
        )
        drawn = drawn_from(None if frame is None else os.path.expanduser(frame), options.sql, request)
    elif options.sql is not None:
        raise UserError("--sql selects from a DuckDB file or from files that it names, not from a frame")
    read = read_frame(
        frame if drawn is None else drawn.table,
        time=options.time,
        target=options.target,
        prediction=options.predictions,
        features=options.features,
        task=options.task,
        columns=options.kinds,
        label_time=options.label_time,
        label_delay=options.time_late,
        probability=options.probabilities,
        dialect=dialect if drawn is None else AS_RECOGNIZED,
        date_format=options.date_format,
    )
    period = options.period if drawn is None else drawn.period
    if options.quick and options.period == "auto":
        period = f"{-(-len(read.samples) // WANTED_PERIODS)} rows"
    if drawn is None:
        return read, period
    notes = (drawn.note, *read.notes) if drawn.note else read.notes
    return replace(read, name=drawn.name, rows=drawn.rows, notes=notes), period


def kept_tasks(table: AuditTable, options: AuditOptions) -> Kept | None:
    """Return where results of tasks are kept; None if the model cannot be recognized by a later audit."""
    try:
        hashes = [_hash("model", table.model), *(_hash("metric", metric) for metric in options.metrics)]
    except CannotHash as error:
        if options.runs is None:
            return None
        raise UserError(
            f"the model or metric cannot be recognized by a later audit: {error}. Define it in a file, or leave out "
            "runs"
        ) from error
    chosen = {name: repr(value) for name, value in options.changed().items() if name not in NOT_IN_KEYS}
    frame = table.frame
    logs = [log for log in (frame.logged_predictions, frame.logged_probabilities) if log is not None]
    log = hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in logs)).hexdigest()
    audit = stable_hash([frame.fingerprint, log, chosen, hashes, sources_hash(), package_versions()])
    if options.runs is None:
        return Kept(scratch_store(), audit, scratch=True)
    if is_url(options.runs):
        raise UserError(f"runs '{options.runs}': the tasks of an audit are kept in a folder, not at a URL")
    return Kept(Store.create(options.runs), audit)


def _hash(kind: str, thing: object) -> str:
    """Return a hash of a model or metric: of its name, or of the code or content of one that the user made."""
    if isinstance(thing, str):
        own = ":" in thing
        thing = (registry.get("model", thing) if kind == "model" else user_code.load(kind, thing)[0]) if own else thing
    return ObjectHasher().hash(thing)


def _command(frame: object, options: AuditOptions) -> str:
    """Return the call of `audit`, without arguments that have their default values."""
    source = repr(str(frame)) if isinstance(frame, str | Path) else "frame"
    given = options.changed().items()
    named = [f"{name}={getattr(value, '__name__', None) or repr(value)}" for name, value in given]
    return " ".join(f"driftline.audit({', '.join([source, *named])})".split())
