"""The reference of a monitor: quality of the model on held-out rows, and the distribution of each column."""

from __future__ import annotations

import numpy as np
import pandas as pd

from driftline.auditing.frame import Frame
from driftline.auditing.logged_probability import split_names
from driftline.auditing.metric import Metric, choose_metrics
from driftline.auditing.options import AuditOptions
from driftline.auditing.run import read_table
from driftline.data.formats.dialect import Dialect
from driftline.errors import UserError
from driftline.monitoring import bins
from driftline.monitoring.models import ModelChoice, class_weights, row_scores, typed_inputs
from driftline.monitoring.result import Z95, mean_estimate
from driftline.monitoring.rows import Columns, Rows, parse_ids
from driftline.monitoring.watch_file import Reference, Watch
from driftline.seeds import Seed
from driftline.tasks import Regression
from driftline.types import Answers

MIN_ROWS = 100
BLOCKS, HELD_OUT = 50, 5  # of consecutive rows; every fifth is held out, to test the model that the others train
MAX_TRAINING_ROWS = 20_000  # of the deployed model; more are drawn from
MAX_HELD_OUT_ROWS = 2_000
KEPT_BATCHES, KEPT_ROWS = 12, 500
REFERENCE_PIECES = 6  # kept batches that the reference is cut into


def read_reference(source: object, id: str | None, options: AuditOptions) -> tuple[str, Rows, Columns]:
    """Return name, rows and columns of the reference."""
    frame, _ = read_table(source, options)
    if id is not None and id not in frame.table.columns:
        raise UserError(f"{frame.name} has no column '{id}' for --id")
    columns = _columns(frame, id, options)
    at, when = frame.samples.x, frame.samples.time
    assert when is not None
    inputs = frame.inputs[list(columns.kinds)].iloc[at].reset_index(drop=True)
    texts = {name: inputs[name].astype(object) for name, kind in columns.kinds.items() if kind in ("category", "text")}
    ids = None if id is None else parse_ids(frame.table[id].iloc[at], frame.name)
    logged = None if frame.logged_predictions is None else np.asarray(frame.logged_predictions, float)
    y, known = frame.samples.y.astype(float), frame.samples.known
    rows = Rows(inputs.assign(**texts), when, y, ids, logged, frame.logged_probabilities, known)
    rows = rows[rows.has_label(when[-1])]
    if len(rows) < MIN_ROWS:
        raise UserError(
            f"{frame.name} has {len(rows)} rows whose target was known at the time of its last row; a monitor needs "
            f"at least {MIN_ROWS}"
        )
    return frame.name, rows, columns


def _columns(frame: Frame, id: str | None, options: AuditOptions) -> Columns:
    time = frame.samples.time
    assert time is not None
    units = {}
    if isinstance(frame.task, Regression):
        units = {"center": frame.task.center, "scale": frame.task.scale}
    return Columns(
        time=frame.time,
        target=frame.target,
        id=id,
        prediction=frame.prediction,
        kinds={c.name: c.kind for c in frame.columns if c.kind != "ignore" and c.name != id},
        time_kind="date" if time.dtype.kind == "M" else "number",
        labels=None if frame.labels is None else tuple(frame.labels.tolist()),
        probabilities=_probabilities(frame, options.probabilities),
        label_time=frame.label_time,
        delay=frame.label_delay,
        dialect=Dialect(options.sep, options.encoding, options.decimal),
        date_format=options.date_format,
        **units,
    )


def _probabilities(frame: Frame, given: list[str]) -> tuple[tuple[str, str | None], ...]:
    """Return columns and classes of logged probabilities; a single column has the class that it was read as."""
    found = split_names(given, list(frame.table.columns))
    if len(found) == 1 and frame.labels is not None and frame.logged_probabilities is not None:
        column = found[0][0]
        values = frame.table[column].iloc[frame.samples.x].to_numpy(float)
        at = int(np.array_equal(frame.logged_probabilities[:, 1], values))
        return ((column, str(frame.labels[at])),)
    return tuple(found)


def fit_watch(name: str, rows: Rows, model: ModelChoice, metric: str | None) -> Watch:
    """Return a watch that has seen the reference and no batch."""
    seed, columns = Seed(model.seed), model.columns
    held_out = np.arange(len(rows)) * BLOCKS // len(rows) % HELD_OUT == HELD_OUT - 1
    training = draw(rows[~held_out], MAX_TRAINING_ROWS, seed.child("training"))
    tested = rows if columns.is_logged else rows[held_out]
    answers = deployed_answers(rows) if columns.is_logged else model.answers(training, tested)
    chosen = choose_metric(metric, columns, tested.y, answers.scores is not None)
    weights = class_weights(rows.y, columns)
    scores = row_scores(answers, tested.y, columns, weights)
    inputs = typed_inputs(rows.inputs, columns)
    reference = Reference(
        name=name,
        rows=len(rows),
        first=time_text(rows.time[0]),
        last=time_text(rows.time[-1]),
        quality=mean_estimate(metric_rows(chosen, tested.y, answers, columns)),
        lowest_score=float(scores.mean() - Z95 * scores.std() / np.sqrt(len(scores))),
        weights=tuple(weights.tolist()),
        inputs={str(name): bins.make_bins(column) for name, column in inputs.items()},
        predictions=bins.make_bins(prediction_column(answers, columns)),
        labels=bins.make_bins(label_column(rows.y, columns)),
    )
    pieces = np.array_split(np.arange(len(rows)), min(REFERENCE_PIECES, max(1, len(rows) // MIN_ROWS)))
    kept = tuple(draw(rows[part], KEPT_ROWS, seed.child("kept", k)) for k, part in enumerate(pieces))
    known = draw(tested, MAX_HELD_OUT_ROWS, seed.child("held-out"))
    return Watch(model, chosen.name, answers.scores is not None, reference, training, known, kept)


def choose_metric(metric: str | None, columns: Columns, y: np.ndarray, probabilities: bool) -> Metric:
    """Return the metric with this name, or the default one."""
    names = [] if metric is None else [metric]
    truth = y if columns.labels is None else y.astype(np.int64)
    return choose_metrics(names, columns.task, truth, probabilities, columns.label_values)[0]


def deployed_answers(rows: Rows) -> Answers:
    """Return logged predictions and probabilities as answers."""
    assert rows.logged is not None
    return Answers(rows.logged, rows.scores)


def metric_rows(metric: Metric, y: np.ndarray, answers: Answers, columns: Columns) -> np.ndarray:
    """Return a value per row whose mean is the metric."""
    if columns.labels is None:
        return metric.rows(y, answers.prediction, None)
    return metric.rows(y.astype(np.int64), answers.prediction.astype(np.int64), answers.scores)


def prediction_column(answers: Answers, columns: Columns) -> pd.Series:
    """Return what is compared of predictions: the score of the second of two classes, else the answers."""
    if columns.labels is not None and answers.scores is not None and len(columns.labels) == 2:
        return pd.Series(answers.scores[:, 1], name="predictions")
    return label_column(answers.prediction, columns).rename("predictions")


def label_column(y: np.ndarray, columns: Columns) -> pd.Series:
    """Return classes by name, or numbers."""
    if columns.labels is None:
        return pd.Series(y, name="labels", dtype=float)
    names = np.array([*map(str, columns.labels), "another class"], dtype=object)
    return pd.Series(names[y.astype(int)], name="labels", dtype="category")


def draw(rows: Rows, limit: int, seed: Seed) -> Rows:
    """Return the rows, or a uniform draw of `limit` of them in their order."""
    if len(rows) <= limit:
        return rows
    return rows[np.sort(seed.numpy().choice(len(rows), limit, replace=False))]


def time_text(value: object) -> str:
    """Return a time: a date, with minutes unless it is midnight, or a number."""
    if isinstance(value, np.datetime64):
        minutes = str(value.astype("datetime64[m]")).replace("T", " ")
        return minutes.removesuffix(" 00:00")
    return f"{float(value):.10g}"  # type: ignore[arg-type]
