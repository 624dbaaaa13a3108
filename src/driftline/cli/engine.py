"""The flags that say who computes, for every command that computes."""

from __future__ import annotations

from typing import Annotated

import typer

FLAGS = ("--engine", "--jobs", "--address", "--timeout", "--retries", "--cpus", "--gpus", "--memory")

EngineName = Annotated[
    str | None,
    typer.Option("--engine", help="serial, local or ray. [default: local for several jobs, else serial]"),
]
Jobs = Annotated[
    int | None, typer.Option(help="How many stages at once; results do not depend on it. [default: 1, on Ray all]")
]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster, e.g. auto. [default: one is started here, and ended]")
]
Timeout = Annotated[float | None, typer.Option(help="Seconds after which a stage has failed.")]
Retries = Annotated[int, typer.Option(help="How often a stage is tried again whose worker or machine was lost.")]
Cpus = Annotated[float, typer.Option(help="CPUs that Ray sets aside for a stage.")]
Gpus = Annotated[float, typer.Option(help="GPUs that Ray sets aside for a stage; only code of your own uses them.")]
Memory = Annotated[str | None, typer.Option(help="Memory that Ray sets aside for a stage, e.g. 4GB.")]
