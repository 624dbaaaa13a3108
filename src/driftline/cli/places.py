"""The flags that say where things are, the same for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.io.atomic import check_file_name


def check_output(path: Path | None) -> Path | None:
    """Refuse an output that cannot be a file before any work is done."""
    if path is not None:
        check_file_name(path)
    return path


RunsFolder = Annotated[
    str | None,
    typer.Option("--runs", help="Where runs are kept, or a URL. [default: $DRIFTLINE_RUNS, else ./driftline-runs]"),
]
DataFolder = Annotated[
    Path | None, typer.Option("--data-dir", help="Where data are. [default: $DRIFTLINE_DATA, else the user's cache]")
]
