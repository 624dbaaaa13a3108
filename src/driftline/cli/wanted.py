"""The flags that say what is to be run, the same for `run` and `plan`."""

from __future__ import annotations

from typing import Annotated

import typer

Data = Annotated[str | None, typer.Option(help="A dataset's name.")]
Model = Annotated[str | None, typer.Option(help="A model's name. [default: the one that suits the data]")]
Methods = Annotated[str | None, typer.Option(help="Names of methods, with commas between.")]
Seeds = Annotated[int | None, typer.Option(help="How many seeds: 3 means 0, 1 and 2.", min=1)]
Set = Annotated[list[str] | None, typer.Option("--set", help="part.key=value, e.g. ft.lr=1e-3 or data.path=x.csv")]
