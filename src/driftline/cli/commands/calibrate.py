"""`driftline calibrate`: measure the accuracy of a model under each pair of corruptions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import DataFolder, check_output
from driftline.cli.printing.terminal import echo
from driftline.types import JsonObject

if TYPE_CHECKING:
    from driftline.spec.job import Job

BENCHMARK = "test-time"
ORDER = "cin-c"  # any that needs no calibration: the initial model does not depend on it


def calibrate(
    output: Annotated[Path, typer.Option("-o", "--output", callback=check_output, help="The file to write.")],
    data: Annotated[str, typer.Option(help="Name of a dataset.")],
    model: Annotated[str | None, typer.Option(help="Name of a model. [default: the one that suits the data]")] = None,
    images: Annotated[int, typer.Option(help="Number of images per entry.", min=1)] = 5000,
    levels: Annotated[
        int, typer.Option(help="Number of severities including 0; 11 takes a quarter of the time of 21.", min=2)
    ] = 21,
    corruptions: Annotated[
        str, typer.Option(help="easy, medium, hard or uniform, or names separated by commas.")
    ] = "uniform",
    seed: Annotated[int, typer.Option(help="Seed of the model, the images and the noise.", min=0)] = 0,
    upstream_updates: Annotated[
        int | None, typer.Option(help="As for `driftline run test-time`: 0 for a pretrained model.", min=0)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="part.key=value, e.g. model.weights=x.pth or data.size=256")
    ] = None,
    frost: Annotated[
        Path | None, typer.Option(help="A folder with ImageNet-C's photographs of frost. [default: synthetic frost]")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of threads. Results are identical for any value.", min=1)] = 1,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Folder of trained models. [default: as for `driftline run`]")
    ] = None,
    data_dir: DataFolder = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Measure the accuracy of a model under every pair of corruptions, for streams of constant difficulty.

    The same command resumes an interrupted calibration.
    """
    from driftline.calibration.run import calibrate_model
    from driftline.engine.executors.process import keep_freed_memory
    from driftline.store.store import Store
    from driftline.streams.test_time.schedule import corruption_names

    keep_freed_memory()
    choices: dict[str, Any] = {"data": data, **({"model": model} if model else {})}
    trained = [] if upstream_updates is None else [f"{BENCHMARK}.upstream_updates={upstream_updates}"]
    matrices = calibrate_model(
        _job(choices, [*trained, *(set_ or [])], seed, data_dir),
        corruption_names(corruptions),
        output,
        images=images,
        levels=levels,
        store=Store.create(runs),
        data_dir=data_dir,
        frost=frost,
        jobs=jobs,
        on_progress=(lambda done, total: None) if quiet else _print_progress,
    )
    if not quiet:
        echo(f"{output}: {len(matrices.by_pair)} matrices of {matrices.levels} x {matrices.levels} accuracies")


def _job(choices: JsonObject, assignments: list[str], seed: int, data_dir: Path | None) -> Job:
    """Return the run whose initial model is calibrated: that of a method that never changes it."""
    from driftline import data, spec

    content = {"benchmark": BENCHMARK, BENCHMARK: {"order": ORDER}, "methods": "frozen", "seeds": [seed], **choices}
    parsed = spec.parse(spec.apply_overrides(content, assignments))
    suits = "" if parsed.model else data.load(parsed.data.name, parsed.data.settings, data.data_folders(data_dir)).model
    return parsed.jobs(default_model=suits)[0]


def _print_progress(done: int, total: int) -> None:
    """Print progress on one line of a terminal, or as ten lines of a log."""
    if sys.stderr.isatty():
        print(f"\rrow {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done * 10 // total > (done - 1) * 10 // total:
        print(f"row {done} of {total}", file=sys.stderr, flush=True)
