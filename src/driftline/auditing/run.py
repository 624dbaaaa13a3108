"""`driftline.audit`: does a model of a table age, since when, how much does it cost, and when to retrain it?"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from driftline.auditing.frame import read_frame
from driftline.auditing.metric import UserMetric, choose_metrics
from driftline.auditing.recommendation import Costs
from driftline.auditing.result import AuditResult, Provenance
from driftline.auditing.table import Limits, periods_until, prepare
from driftline.auditing.work import OnProgress, Work
from driftline.errors import UserError
from driftline.types import JsonObject, Network
from driftline.version import __version__


def audit(
    frame: object,
    *,
    time: str,
    target: str,
    model: Network = "hist-gradient-boosting",
    prediction: str | None = None,
    period: str = "auto",
    features: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    task: str = "auto",
    metric: str | UserMetric | Sequence[str | UserMetric] = (),
    delay: int | str = 0,
    label_time: str | None = None,
    deployed: int | None = None,
    train_until: str | None = None,
    cost_error: float | None = None,
    cost_retrain: float | None = None,
    delta: float = 0.9,
    limits: Limits | None = None,
    seed: int = 0,
    jobs: int = 1,
    on_progress: OnProgress = lambda description, done, total: None,
) -> AuditResult:
    """Audit a model on a table: does it age, since when, what does it cost, and which retraining policy is best?

    `frame`: a frame of pandas or polars, or the path of a CSV or Parquet file. `model`: the name of a registered
    model, "module:factory", any object with `fit` and `predict`, or a class or function that makes one; with
    `prediction`, a column of logged predictions is audited instead and nothing is trained. `period`: day, week, month,
    quarter, year, decade, each, "500 rows" or auto. `columns`: kinds of columns that are not guessed: number, category,
    text, date or ignore; of the time column, date or number. `task`: classes, number or auto. `metric`: one or several;
    the first one decides. `delay`: number of periods by which labels are late, or a time such as 60d; or
    `label_time`: the column of the times at which labels became known. `deployed`: number of periods that train the
    first model, or `train_until`: the last time of them. `cost_error`, `cost_retrain`: cost of a wrong answer and
    of a retraining. Results are identical for any number of `jobs`.

    >>> from driftline.auditing.examples import table
    >>> result = audit(table(rows=400), time="when", target="y", model="logistic-regression", period="100 rows")
    >>> result.gate_values["periods"]
    4
    """
    features = None if features is None else list(map(str, features))
    command = _command(dict(locals()))
    periods_late, time_late = _parse_delay(delay, label_time)
    if periods_late < 0 or not 0 < delta <= 1 or jobs < 1:
        raise UserError("delay must be 0 or greater, jobs 1 or greater, delta between 0 and 1")
    if any(cost is not None and cost < 0 for cost in (cost_error, cost_retrain)):
        raise UserError("costs must be 0 or greater")
    read = read_frame(
        frame,
        time=time,
        target=target,
        prediction=prediction,
        features=features,
        task=task,
        columns=columns,
        label_time=label_time,
        label_delay=time_late,
    )
    cut = partial(prepare, read, model, delay=periods_late, seed=seed, limits=limits or Limits())
    table = cut(period, deployed=deployed)
    if train_until is not None:
        table = cut(table.period, deployed=periods_until(table.starts, train_until))
    names = [metric] if isinstance(metric, str) or callable(metric) else list(metric)
    metrics = choose_metrics(names, read.task, read.samples.y, table.has_probabilities, read.labels)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    provenance = Provenance(__version__, date, command, read.fingerprint)
    work = Work(table, metrics, bool(names), jobs, on_progress)
    if table.is_log:
        return work.audit_log(provenance)
    return work.audit_model(provenance, delta, Costs(cost_error, cost_retrain))


def _parse_delay(delay: int | str, label_time: str | None) -> tuple[int, str | None]:
    """Return a delay in periods, and one in time."""
    late = str(delay).strip()
    if label_time is not None and late != "0":
        raise UserError("the label times say how late labels are: leave out the delay")
    return (int(late), None) if late.removeprefix("-").isdecimal() else (0, late)


def _command(arguments: JsonObject) -> str:
    """Return the call of `audit`, without arguments that have their default values."""
    frame = repr(str(arguments["frame"])) if isinstance(arguments["frame"], str | Path) else "frame"
    options = [p for p in inspect.signature(audit).parameters.values() if p.name not in ("frame", "on_progress")]
    given = {p.name: arguments[p.name] for p in options if arguments[p.name] != p.default}
    named = [f"{name}={getattr(value, '__name__', None) or repr(value)}" for name, value in given.items()]
    return " ".join(f"driftline.audit({', '.join([frame, *named])})".split())
