"""The options of an audit as flags, for `driftline audit` and `driftline monitor`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING
from typing import Annotated, Any

import typer

from driftline.auditing import options

File = Annotated[
    str | None,
    typer.Argument(
        help="A .csv, .tsv (also .gz) or .parquet file, a folder or glob of them, a .duckdb file, or a URL of these.",
        metavar="FILE",
    ),
]


def with_audit_flags(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command options of an audit as flags, all or these, between its first argument and its own flags."""
    flags = [_parameter(*flag) for flag in options.flags() if not names or flag[0] in names]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        first, *rest = (p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD)
        parameters = [first, *flags, *rest]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


def _parameter(name: str, kind: Any, flag: options.Flag, default: object) -> inspect.Parameter:
    option = typer.Option(*_names(name, kind, flag), help=flag.help, min=flag.min, metavar=flag.metavar)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[kind, option],
        default=inspect.Parameter.empty if default is MISSING else default,
    )


def _names(name: str, kind: object, flag: options.Flag) -> tuple[str, ...]:
    """Return the name of a flag: its own, or that of one without a value, which needs no opposite."""
    if flag.name is not None:
        return (flag.name,)
    return (f"--{name}",) if kind is bool else ()
