"""The options of an audit: the one list behind `driftline.audit` and `driftline audit`.

A field is an argument of the function and, with `_` as `-`, a flag of the command. This module imports nothing heavy,
so that the command line can list its flags quickly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import update_wrapper
from typing import Annotated, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from driftline.errors import UserError, unknown_name

P = ParamSpec("P")
R = TypeVar("R")
OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with a description of what is done, the number of finished tasks, and the number of all tasks."""
UserMetric: TypeAlias = Callable[..., float]
"""A function of truth, prediction and, if it takes three arguments, class probabilities."""
QUICK = (400, 600, 300)  # limits of rows in a quick audit
DEFAULT_MODEL = "hist-gradient-boosting"


@dataclass(frozen=True)
class Flag:
    """How an option appears as a flag of the command."""

    help: str
    type: object = None
    """The type on the command line, if it is not that of the field."""
    min: float | None = None
    metavar: str | None = None
    name: str | None = None
    """The name on the command line, if it does not follow from that of the field."""


def show_nothing(description: str, done: int, total: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """How to audit a table. Fields without a flag are for Python only."""

    time: Annotated[str, Flag("The time column.")]
    target: Annotated[str, Flag("The column to predict.")]
    model: Annotated[Any, Flag(f"Name of a model, or module:factory. [default: {DEFAULT_MODEL}]", str | None)] = None
    predictions: Annotated[str | None, Flag("A column of logged predictions, in place of a model.")] = None
    probability: Annotated[
        str | Sequence[str],
        Flag(
            "A column of logged class probabilities; for several classes one per class.",
            list[str] | None,
            metavar="COLUMN[=CLASS]",
        ),
    ] = ()
    period: Annotated[str, Flag('day, week, month, quarter, year, "500 rows" or auto.')] = "auto"
    features: Annotated[
        Sequence[str] | None, Flag("Feature columns, separated by commas. [default: all others]", str | None)
    ] = None
    columns: Annotated[
        Mapping[str, str] | Sequence[str] | None,
        Flag(
            "Kind of a column: NAME=number, category, text, date or ignore. [default: guessed]",
            list[str] | None,
            metavar="NAME=KIND",
            name="--column",
        ),
    ] = None
    task: Annotated[str, Flag("classes, number or auto.")] = "auto"
    metric: Annotated[
        str | UserMetric | Sequence[str | UserMetric],
        Flag(
            "accuracy, balanced, f1, auc, average-precision, log-loss, brier, rmse, mae, r2 or module:function; the "
            "first one decides. [default: by task and balance]",
            list[str] | None,
        ),
    ] = ()
    train_until: Annotated[str | None, Flag("Last time of the rows that train the deployed model.")] = None
    deployed: Annotated[
        int | None,
        Flag("Number of periods that train the deployed model. [default: 3, or fewer with less than 9 periods]", min=1),
    ] = None
    cost_error: Annotated[float | None, Flag("Cost of a wrong answer, or of one unit of absolute error.", min=0)] = None
    cost_retrain: Annotated[float | None, Flag("Cost of a retraining.", min=0)] = None
    delay: Annotated[
        int | str, Flag("Number of periods by which labels are late, or a time such as 60d. [default: 0]", str | None)
    ] = 0
    label_time: Annotated[
        str | None, Flag("The column of the times at which labels became known.", metavar="COLUMN")
    ] = None
    sql: Annotated[
        str | None, Flag('Audit the rows of this query, e.g. "select * from sales", of the DuckDB file FILE if given.')
    ] = None
    sep: Annotated[
        str | None, Flag("Separator of columns in a CSV file: one character, or tab. [default: recognized]")
    ] = None
    encoding: Annotated[str | None, Flag("Encoding of a CSV file, such as latin-1. [default: recognized]")] = None
    decimal: Annotated[str | None, Flag("Decimal sign in a CSV file: . or a comma. [default: recognized]")] = None
    date_format: Annotated[
        str | None,
        Flag("How times are written: %d.%m.%Y, unix, unix-ms, unix-us or unix-ns. [default: recognized]"),
    ] = None
    delta: Annotated[float, Flag("A model lasts until it falls below this share of a new one.")] = 0.9
    rows: Annotated[int, Flag("Maximum number of rows per period.", min=50)] = 5_000
    training_rows: Annotated[int, Flag("Maximum number of rows of one training.", min=50)] = 20_000
    probe_rows: Annotated[
        int, Flag("Maximum number of rows that train or test a model of the matrix, per period.", min=20)
    ] = 2_000
    quick: Annotated[
        bool,
        Flag("A first verdict in seconds: 12 periods of 400 rows at most, no detectors, no files."),
    ] = False
    seed: Annotated[int, Flag("Seed of all random choices.", min=0)] = 0
    jobs: Annotated[
        int | None,
        Flag("Number of parallel workers. Results are identical for any value. [default: 2; in Python 1]", min=1),
    ] = None
    engine: Annotated[str | None, Flag("serial, local or ray. [default: local for several jobs, else serial]")] = None
    address: Annotated[str | None, Flag("Address of a Ray cluster, e.g. auto. [default: start one here]")] = None
    runs: Annotated[
        str | None,
        Flag("Folder in which the results of all tasks are kept. [default: a cache, until the audit has ended]"),
    ] = None
    on_progress: OnProgress | None = None

    def __post_init__(self) -> None:
        for name, value in (("features", _names(self.features)), ("columns", _kinds(self.columns))):
            object.__setattr__(self, name, value)
        if self.model is not None and (self.predictions is not None or self.probability):
            raise UserError(
                "give a model to train with --model, or logged answers with --predictions and --probability, not both"
            )
        if not 0 < self.delta <= 1:
            raise UserError("delta must be between 0 and 1")
        if self.rows < 2 or self.training_rows < 1 or self.probe_rows < 1:
            raise UserError("rows must be 2 or greater, training_rows and probe_rows 1 or greater")
        if any(cost is not None and cost < 0 for cost in (self.cost_error, self.cost_retrain)):
            raise UserError("costs must be 0 or greater")
        if self.label_time is not None and str(self.delay).strip() != "0":
            raise UserError("the label times say how late labels are: leave out the delay")
        if str(self.delay).strip().startswith("-"):
            raise UserError("delay must be 0 or greater")

    @property
    def limits(self) -> tuple[int, int, int]:
        """Rows of a period, of a training, and of a model of the matrix."""
        chosen = (self.rows, self.training_rows, self.probe_rows)
        return tuple(map(min, chosen, QUICK)) if self.quick else chosen  # type: ignore[return-value]

    @property
    def kinds(self) -> dict[str, str]:
        """The chosen kinds of columns."""
        return dict(self.columns) if isinstance(self.columns, Mapping) else {}

    @property
    def probabilities(self) -> list[str]:
        """The columns of logged class probabilities."""
        return [self.probability] if isinstance(self.probability, str) else list(self.probability)

    @property
    def metrics(self) -> list[str | UserMetric]:
        """The chosen metrics; none: the default."""
        return [self.metric] if isinstance(self.metric, str) or callable(self.metric) else list(self.metric)

    @property
    def periods_late(self) -> int:
        """By how many periods labels are late; 0 if the delay is a time."""
        return 0 if self.time_late else int(self.delay)

    @property
    def time_late(self) -> str | None:
        """How long after their rows labels are known, such as 60d."""
        late = str(self.delay).strip()
        return None if late.isdecimal() else late

    def changed(self) -> dict[str, Any]:
        """Return the options that do not have their default values."""
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self) if f.name != "on_progress"}
        return {name: value for name, (value, default) in values.items() if value != default}


def flags() -> list[tuple[str, Any, Flag, Any]]:
    """Return name, type, flag and default of each option of the command; MISSING is the default of a required one."""
    found = []
    for field, (kind, *flag) in zip(fields(AuditOptions), _types().values(), strict=True):
        if flag:
            found.append((field.name, flag[0].type or kind, flag[0], None if flag[0].type else field.default))
    return found


def _types() -> dict[str, tuple[Any, ...]]:
    """Return the type of each field and, if it has one, its flag."""
    hints = get_type_hints(AuditOptions, include_extras=True)
    return {name: get_args(hint) if get_origin(hint) is Annotated else (hint,) for name, hint in hints.items()}


def with_options(
    options: Callable[P, AuditOptions],
) -> Callable[[Callable[[object, AuditOptions], R]], Callable[Concatenate[object, P], R]]:
    """Return a decorator that gives a function of a table and options the options' fields as arguments."""

    def decorate(function: Callable[[object, AuditOptions], R]) -> Callable[Concatenate[object, P], R]:
        def call(frame: object = None, /, *args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in _types():
                    raise unknown_name("argument of audit", name, _types())
            return function(frame, options(*args, **kwargs))

        first = inspect.Parameter("frame", inspect.Parameter.POSITIONAL_ONLY, default=None, annotation=object)
        given = inspect.signature(options).parameters.values()
        typed = [parameter.replace(annotation=_types()[parameter.name][0]) for parameter in given]
        update_wrapper(call, function)
        call.__signature__ = inspect.Signature([first, *typed])  # type: ignore[attr-defined]
        helps = "".join(f"\n    {name}: {flag.help}" for name, _, flag, _ in flags())
        call.__doc__ = f"{function.__doc__}{helps}"
        return call

    return decorate


def _names(features: Sequence[str] | None) -> list[str] | None:
    if isinstance(features, str):
        return [name.strip() for name in features.split(",")]
    return None if features is None else list(map(str, features))


def _kinds(columns: Mapping[str, str] | Sequence[str] | None) -> dict[str, str] | None:
    """Return the kinds of columns by name; in NAME=KIND a name may contain an equals sign."""
    if columns is None or isinstance(columns, Mapping):
        return None if columns is None else dict(columns)
    for text in columns:
        if "=" not in text:
            raise UserError(f"--column takes NAME=KIND, for example price=number; got '{text}'")
    return {name: kind for name, _, kind in (text.rpartition("=") for text in columns)}
