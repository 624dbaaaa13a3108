"""The options of an audit are listed once: arguments of the function are flags of the command."""

from __future__ import annotations

import inspect
from dataclasses import fields

import typer
from typer.main import get_command

import driftline
from driftline.auditing.options import AuditOptions
from driftline.cli.commands.audit import audit as command


def test_every_argument_is_a_flag_with_help_and_the_same_default() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    flags = {parameter.name: parameter for parameter in get_command(app).params}
    arguments = inspect.signature(driftline.audit).parameters
    assert list(arguments) == ["frame", *(field.name for field in fields(AuditOptions))]
    own = {"file", "fail_if", "output", "json", "quiet", "schema", "help"}
    assert set(flags) - own == set(arguments) - {"frame", "on_progress"}
    for name, parameter in arguments.items():
        if name in ("frame", "on_progress"):
            continue
        assert getattr(flags[name], "help", ""), name
        assert f"{name}: " in str(driftline.audit.__doc__)
        if flags[name].default is not None and name != "jobs":  # two workers at the command line
            assert flags[name].default == parameter.default, name


def test_texts_of_the_command_line_mean_the_same_as_values_in_python() -> None:
    typed = AuditOptions(time="t", target="y", features="a, b", columns=["a=b=text"], delay="2", metric="auc")  # type: ignore[arg-type]
    given = AuditOptions(time="t", target="y", features=("a", "b"), columns={"a=b": "text"}, delay=2, metric=["auc"])
    assert typed.features == given.features == ["a", "b"]
    assert typed.kinds == given.kinds == {"a=b": "text"}
    assert typed.periods_late == given.periods_late == 2
    assert typed.metrics == given.metrics == ["auc"]
    assert AuditOptions(time="t", target="y", delay="60d").time_late == "60d"
