"""Printing with control characters escaped, so that no name from a record can control a terminal."""

from __future__ import annotations

import typer

from driftline.io.sanitize import escape_control


def echo(text: str, err: bool = False, nl: bool = True) -> None:
    """Print a text."""
    typer.echo(escape_control(text), err=err, nl=nl)
