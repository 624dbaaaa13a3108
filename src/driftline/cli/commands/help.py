"""`driftline help`: describe a registered thing and its settings."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline import registry
from driftline.cli.commands.figure import option_rows
from driftline.cli.commands.list import KINDS
from driftline.cli.printing.settings import write_settings
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError, unknown_name

PARTS = ("reveal", "device", "selection")
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND] NAME",
        help="Name of a benchmark, method, dataset, model or metric, of a part of a spec (reveal, device, selection) "
        "or of a command. A file of yours needs the kind: method mine.py:Mine.",
    ),
]


def help_(context: typer.Context, words: Words = None) -> None:
    """Describe a benchmark, method, dataset, model or metric.

    Every setting is listed with its type, default and meaning, and the paper is named.
    """
    parent = context.parent
    assert parent is not None
    if not words:
        echo(parent.get_help())
        return
    if len(words) > 2:
        raise UserError(f"driftline help takes a kind and a name, for example `data yearbook`; got '{' '.join(words)}'")
    name = words[-1]
    kinds = [_kind(words[0])] if len(words) == 2 else _kinds(name)
    if kinds:
        echo("\n".join(_text(context, kind, name) for kind in kinds), nl=False)
        return
    commands = parent.command.commands  # type: ignore[attr-defined]
    if name not in commands:
        if (kind := _kinds_of_things().get(name)) is not None:
            plural = next(one for one in KINDS if KINDS[one] == kind)
            raise UserError(f"give the name of a {kind}: driftline help {name} NAME; see `driftline list {plural}`")
        things = {one for kind in registry.KINDS for one in registry.names(kind)}
        raise unknown_name("name or command", name, {*things, *PARTS, *commands})
    echo(commands[name].get_help(type(context)(commands[name], info_name=name, parent=parent)))


def _kind(word: str) -> str:
    """Return the kind that a word such as `data` or `methods` stands for."""
    kinds = _kinds_of_things()
    if word not in kinds:
        raise unknown_name("kind", word, kinds)
    return kinds[word]


def _kinds_of_things() -> dict[str, str]:
    """Return the kinds of things by the words for them."""
    return {**KINDS, **dict(zip(registry.KINDS, registry.KINDS, strict=True)), "data": "dataset"}


def _kinds(name: str) -> list[str]:
    """Return the kinds that have a thing of this name."""
    if ":" in name:
        raise UserError(f"say what {name} is, for example: driftline help method {name}")
    return [kind for kind in registry.KINDS if name in registry.names(kind)] or (["part"] if name in PARTS else [])


def _text(context: typer.Context, kind: str, name: str) -> str:
    """Return the description of a thing."""
    from driftline.spec.describe import describe

    thing, formatter = describe(kind, name), context.make_formatter()
    formatter.write_text(f"{name} ({kind}){': ' if thing.summary else ''}{thing.summary}")
    if thing.paper:
        formatter.write_text(f"Paper: {thing.paper}")
    if thing.settings:
        with formatter.section("Settings"):
            write_settings(formatter, kind, name)
    if kind == "figure" and (rows := option_rows(name)):
        formatter.write_dl(rows)
    return formatter.getvalue()
