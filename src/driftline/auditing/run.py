"""`driftline.audit`: how long a model of a table stays good, what changed, and when to retrain it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from driftline import parallel
from driftline.auditing.baseline import measure_baseline
from driftline.auditing.data import summarize
from driftline.auditing.decay import Decay, evaluate_models, logged_answers, measure_decay, measure_log_decay
from driftline.auditing.detectors import DetectorResult, log_alarms, score_detectors
from driftline.auditing.feature_shift import feature_shifts
from driftline.auditing.frame import read_frame
from driftline.auditing.policies import Policies, compare_policies, policies, recommend_policy, replay
from driftline.auditing.result import AuditResult, Provenance
from driftline.auditing.shift import domain_classifier, measure_shift
from driftline.auditing.table import HOLDOUT, AuditTable, Limits, prepare
from driftline.errors import UserError
from driftline.types import JsonObject, Network
from driftline.version import __version__

OnProgress = Callable[[str, int, int], None]
"""Called with a description of what is done, the number of finished tasks, and the number of all tasks."""
Computed = dict["Part", JsonObject]


class Part(Enum):
    """The parts of an audit that take time."""

    MODELS = auto()
    POLICY = auto()
    PERIOD = auto()
    FEATURES = auto()


@dataclass(frozen=True, eq=False)
class Task:
    """A unit of parallel work; `name` is that of the policy or the period."""

    part: Part
    name: str
    description: str
    compute: Callable[[], object]


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
    delay: int | str = 0,
    label_time: str | None = None,
    delta: float = 0.9,
    holdout: float = HOLDOUT,
    limits: Limits | None = None,
    seed: int = 0,
    jobs: int = 1,
    on_progress: OnProgress = lambda description, done, total: None,
) -> AuditResult:
    """Audit a model on a table: how long it stays good, what changed, and which retraining policy is best.

    `frame`: a frame of pandas or polars, or the path of a CSV or Parquet file. `model`: the name of a registered
    model, "module:factory", any object with `fit` and `predict`, or a class or function that makes one; with
    `prediction`, a column of logged predictions is audited instead and nothing is trained. `period`: day, week, month,
    quarter, year, decade, each, "500 rows" or auto. `columns`: kinds of columns that are not guessed: number, category,
    text, date or ignore; of the time column, date or number. `delay`: number of periods by which labels are late, or a
    time such as 60d. `label_time`: the column of the times at which labels became known. `task`: classes, number or
    auto. Results are identical for any number of `jobs`.

    >>> from driftline.auditing.examples import table
    >>> result = audit(table(rows=400), time="when", target="y", model="logistic-regression", period="100 rows")
    >>> result.gate_values["periods"]
    4
    """
    features = None if features is None else list(map(str, features))
    command = _command(dict(locals()))
    periods_late, time_late = _parse_delay(delay, label_time, prediction)
    if periods_late < 0 or not 0 < delta <= 1 or jobs < 1 or not 0 < holdout < 1:
        raise UserError("delay must be 0 or greater, jobs 1 or greater, delta and holdout between 0 and 1")
    read = read_frame(
        frame,
        time=time,
        target=target,
        prediction=prediction,
        features=features,
        task=task,
        columns=columns,
        label_time=label_time,
        delay=time_late,
    )
    table = prepare(read, model, period, periods_late, seed, limits or Limits(), holdout)
    computed = _compute(table, jobs, on_progress)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return _result(table, computed, delta, Provenance(__version__, date, command, read.fingerprint))


def _parse_delay(delay: int | str, label_time: str | None, prediction: str | None) -> tuple[int, str | None]:
    """Return a delay in periods, and one in time."""
    if label_time is not None and delay not in (0, "0"):
        raise UserError("the label times say how late labels are: leave out the delay")
    late = str(delay).strip()
    in_periods = late.removeprefix("-").isdigit()
    if prediction is not None and (label_time is not None or not in_periods):
        raise UserError("logged predictions have no model to retrain: leave out label times, or give periods as delay")
    return (int(late), None) if in_periods else (0, late)


def _command(arguments: JsonObject) -> str:
    """Return the call of `audit`, without arguments that have their default values."""
    frame = repr(str(arguments["frame"])) if isinstance(arguments["frame"], str | Path) else "frame"
    options = [p for p in inspect.signature(audit).parameters.values() if p.name not in ("frame", "on_progress")]
    given = {p.name: arguments[p.name] for p in options if arguments[p.name] != p.default}
    named = [f"{name}={getattr(value, '__name__', None) or repr(value)}" for name, value in given.items()]
    return " ".join(f"driftline.audit({', '.join([frame, *named])})".split())


def _tasks(table: AuditTable) -> list[Task]:
    """Return all work that takes time, the longest first."""
    tasks = []
    if not table.is_log:
        table.new_model()  # raise an error about the model before any work is done
        description = "one model per period, evaluated in all later periods"
        tasks.append(Task(Part.MODELS, "", description, partial(evaluate_models, table)))
        for name, policy in policies(len(table.periods)).items():
            tasks.append(Task(Part.POLICY, name, f"retraining policy replayed: {name}", partial(replay, table, policy)))
    if table.frame.features:
        for tau, name in enumerate(table.names[1:], 1):
            description = f"inputs compared with the first period: {name}"
            tasks.append(Task(Part.PERIOD, name, description, partial(domain_classifier, table, tau)))
        tasks.append(Task(Part.FEATURES, "", "distances of each feature", partial(feature_shifts, table)))
    return tasks


def _compute(table: AuditTable, jobs: int, on_progress: OnProgress) -> Computed:
    """Run all tasks in parallel and return their results by part and name."""
    tasks = _tasks(table)
    audited = "the logged predictions" if table.is_log else f"model {table.model_name}"
    rows, names = len(table.frame.samples), table.names
    on_progress(
        f"{table.frame.name}: {rows:,} rows in {len(names)} periods, {names[0]} to {names[-1]}; {audited}",
        0,
        len(tasks),
    )

    def on_done(task: Task, done: int) -> None:
        on_progress(task.description, done, len(tasks))

    computed: Computed = {part: {} for part in Part}
    results = parallel.map(lambda task: task.compute(), tasks, jobs, on_done=on_done)
    for task, result in zip(tasks, results, strict=True):
        computed[task.part][task.name] = result
    return computed


def _result(table: AuditTable, computed: Computed, delta: float, provenance: Provenance) -> AuditResult:
    probes = logged_answers(table) if table.is_log else computed[Part.MODELS][""]
    decay = measure_log_decay(table, probes) if table.is_log else measure_decay(table, probes, delta)
    replayed: Policies | None = None
    detectors: tuple[DetectorResult, ...] = ()
    if isinstance(decay, Decay):
        results = compare_policies(table, computed[Part.POLICY])
        replayed = Policies(results, recommend_policy(results))
        detectors = score_detectors(table, computed[Part.POLICY], replayed, decay.matrix.ttr)
    shift = None
    if table.frame.features:
        shift = measure_shift(table, probes, computed[Part.FEATURES][""], computed[Part.PERIOD])
    return AuditResult(
        provenance=provenance,
        data=summarize(table),
        decay=decay,
        baseline=measure_baseline(table, probes, delta),
        shift=shift,
        policies=replayed,
        detectors=detectors,
        log_alarms=log_alarms(table, probes) if table.is_log else {},
        skipped=_skipped(table),
    )


def _skipped(table: AuditTable) -> tuple[str, ...]:
    """Return what could not be computed, and why."""
    notes = []
    if table.is_log:
        notes.append(
            "A log of predictions has no model to retrain, so there is no A(t, τ), no TAS and no policy replay"
        )
    if find_spec("river") is None:
        notes.append('Drift detectors were not run: pip install "driftline[river]"')
    return tuple(notes)
