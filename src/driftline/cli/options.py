"""Options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.completion import complete_list, complete_names
from driftline.errors import UserError
from driftline.io.atomic import check_file_name

RUN_FLAGS = (
    *(
        "--methods",
        "--seeds",
        "--budget-macs",
        "--labels",
        "--set",
        "--runs",
        "--data-dir",
        "--quiet",
        "--print-spec",
        "--full",
    ),
    *("--device", "--precision", "--engine", "--jobs", "--address", "--timeout", "--retries"),
    *("--cpus", "--gpus", "--memory"),
)
"""Flags of `driftline run` for benchmarks and for a matrix."""
TABLE_SUFFIXES = (".csv", ".csv.gz", ".parquet")


def check_output(path: Path | None) -> Path | None:
    """Refuse an output that cannot be a file before any work is done."""
    if path is not None:
        check_file_name(path)
    return path


def refuse_empty(context: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    """Refuse an empty text, as of a shell variable that is not set."""
    if value == "":
        raise UserError(f"{max(param.opts, key=len)} is empty")
    return value


Run = Annotated[
    str,
    typer.Argument(help="A run: METHOD:SEED such as er:0, its key or the beginning of its key, or its folder."),
]
Runs = Annotated[
    list[str] | None, typer.Argument(metavar="[RUNS]", help="Keys of runs, or a folder of runs. [default: all]")
]
RunsFolder = Annotated[
    str | None,
    typer.Option("--runs", help="Folder or URL of the runs. [default: $DRIFTLINE_RUNS, else ./driftline-runs]"),
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the data. [default: $DRIFTLINE_DATA, else the user's cache]"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
HtmlFile = Annotated[Path, typer.Option("-o", "--output", callback=check_output, help="The HTML file to write.")]

Data = Annotated[str | None, typer.Option(help="Name of a dataset.", autocompletion=complete_names("dataset"))]
Model = Annotated[
    str | None,
    typer.Option(
        help="Name of a model. [default: the one that suits the data]", autocompletion=complete_names("model")
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(help="Names of methods, separated by commas.", autocompletion=complete_list("method")),
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Names of label rules, separated by commas, e.g. geometric-delay,symmetric-noise. [default: none]",
        autocompletion=complete_list("label-rule"),
    ),
]
Seeds = Annotated[int | None, typer.Option(help="Number of seeds: 3 means 0, 1 and 2.", min=1)]
BudgetMacs = Annotated[
    str | None,
    typer.Option(help="Compare at equal compute: the MACs that each run may spend, e.g. 1e9. [default: no limit]"),
]
Set = Annotated[list[str] | None, typer.Option("--set", help="part.key=value, e.g. ft.lr=1e-3 or data.path=x.csv")]

EngineName = Annotated[
    str | None,
    typer.Option("--engine", help="serial, local or ray. [default: local for several jobs, else serial]"),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Number of parallel workers. Results are identical for any value. [default: 1; with Ray: all CPUs]"
    ),
]
Address = Annotated[
    str | None,
    typer.Option(help="Address of a Ray cluster, e.g. auto. [default: start one here, and stop it at the end]"),
]
Timeout = Annotated[float | None, typer.Option(help="Seconds after which a stage counts as failed.")]
Retries = Annotated[int, typer.Option(help="Number of retries of a stage whose worker or machine was lost.")]
Cpus = Annotated[float, typer.Option(help="CPUs that Ray reserves for a stage.")]
Gpus = Annotated[float, typer.Option(help="GPUs that Ray reserves for a stage, e.g. 0.5.")]
Device = Annotated[
    str | None,
    typer.Option(help="auto, cpu, cuda, cuda:1, mps or xpu. [default: $DRIFTLINE_DEVICE, else auto]"),
]
PrecisionName = Annotated[
    str | None, typer.Option("--precision", help="float32, bfloat16 or float16. [default: float32]")
]
Memory = Annotated[str | None, typer.Option(help="Memory that Ray reserves for a stage, e.g. 4GB.")]


def split_flags(words: list[str]) -> list[str]:
    """Return arguments with `--flag=value` as two words.

    >>> split_flags(["--shifts=CLR", "--test", "a=b"])
    ['--shifts', 'CLR', '--test', 'a=b']
    """
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]


def split_names(flag: str, text: str | None) -> list[str]:
    """Return names separated by commas outside of parentheses; a flag without a name is refused.

    >>> split_names("--methods", "er(lr=0.1, batch=8), ncm"), split_names("--methods", None)
    (['er(lr=0.1, batch=8)', 'ncm'], [])
    """
    if text is None:
        return []
    names = [name.strip() for name in re.split(r",(?![^()]*\))", text) if name.strip()]
    if not names:
        raise UserError(f"{flag} is empty: give names separated by commas")
    return names


def assignments(settings: list[str] | None, device: str | None, precision: str | None) -> list[str]:
    """Return `--set`, `--device` and `--precision` as assignments to a spec."""
    flags = {"name": device, "precision": precision}
    return [*(settings or []), *(f"device.{key}={value}" for key, value in flags.items() if value is not None)]


def parse_macs(text: str | None) -> int | None:
    """Return a number of multiply-accumulates.

    >>> parse_macs("1.5e9"), parse_macs(None)
    (1500000000, None)
    """
    if text is None:
        return None
    try:
        macs = int(float(text))
    except (ValueError, OverflowError):
        macs = 0
    if macs < 1:
        raise UserError(f"--budget-macs {text}: give a number of multiply-accumulates of 1 or more, for example 1e9")
    return macs


def check_names(data: str | None, methods: str | None) -> None:
    """Explain how to give a file where `--data mine.csv` or `--methods mine.py` was typed.

    >>> check_names("table", "erm,mine.py:Mine")
    """
    if data is not None and data.endswith(TABLE_SUFFIXES) and not data.startswith("table:"):
        raise UserError(
            f"--data takes a dataset's name; for your own table use --data table --set data.path={data} "
            "--set data.time=COLUMN --set data.target=COLUMN"
        )
    for method in (methods or "").split(","):
        if method.strip().endswith(".py"):
            raise UserError(f"say which class of {method.strip()} is the method: {method.strip()}:CLASS")
