"""Where the command line prints: everything passes here, so that no name from a record can steer a terminal."""

from __future__ import annotations

import typer

from driftline.plain import visible


def echo(text: str, err: bool = False, nl: bool = True) -> None:
    """Print a text."""
    typer.echo(visible(text), err=err, nl=nl)
