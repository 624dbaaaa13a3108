"""`driftline calibrate`: how often a model is right under each pair of corruptions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from driftline.cli.options import check_output
from driftline.cli.printing.terminal import echo

BENCHMARK = "test-time"
ORDER = "cin-c"  # any that needs no calibration: the starting model does not depend on it


def calibrate(
    output: Annotated[Path, typer.Option("-o", "--output", callback=check_output, help="The file to write.")],
    data: Annotated[str, typer.Option(help="A dataset's name.")],
    model: Annotated[str | None, typer.Option(help="A model's name. [default: the one that suits the data]")] = None,
    images: Annotated[int, typer.Option(help="How many images each entry is measured on.", min=1)] = 5000,
    levels: Annotated[
        int, typer.Option(help="Severities, 0 included; 11 takes a quarter of the time of 21.", min=2)
    ] = 21,
    corruptions: Annotated[
        str, typer.Option(help="easy, medium, hard or uniform, or names with commas between.")
    ] = "uniform",
    seed: Annotated[int, typer.Option(help="The seed of the model, the images and the noise.", min=0)] = 0,
    upstream_updates: Annotated[
        int | None, typer.Option(help="As for `driftline run test-time`: 0 for a model that comes trained.", min=0)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="part.key=value, e.g. model.weights=x.pth or data.size=256")
    ] = None,
    frost: Annotated[
        Path | None, typer.Option(help="A folder with ImageNet-C's photographs of frost. [default: made-up frost]")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads. The matrices do not depend on it.", min=1)] = 1,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Where trained models are kept. [default: as for `driftline run`]")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Where data are. [default: as for `driftline run`]")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Measure a model under every pair of corruptions, so that streams of constant difficulty can be laid out.

    A calibration that was stopped goes on where it was if the same command is given again.
    """
    from driftline.calibration.run import calibrate_model
    from driftline.engine.executors.process import keep_freed_memory
    from driftline.store.store import Store
    from driftline.streams.test_time.schedule import corruption_names

    keep_freed_memory()
    said: dict[str, Any] = {"data": data, **({"model": model} if model else {})}
    trained = [] if upstream_updates is None else [f"{BENCHMARK}.upstream_updates={upstream_updates}"]
    matrices = calibrate_model(
        _job(said, [*trained, *(set_ or [])], seed, data_dir),
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


def _job(said: dict[str, Any], assignments: list[str], seed: int, data_dir: Path | None) -> Any:
    """The run whose starting model is calibrated: that of a method that never changes it."""
    from driftline import data, spec

    content = {"benchmark": BENCHMARK, BENCHMARK: {"order": ORDER}, "methods": "frozen", "seeds": [seed], **said}
    parsed = spec.parse(spec.apply_overrides(content, assignments))
    suits = "" if parsed.model else data.load(parsed.data.name, parsed.data.settings, data.data_folders(data_dir)).model
    return parsed.jobs(default_model=suits)[0]


def _print_progress(done: int, of: int) -> None:
    """How far it is, on one line of a terminal, or as ten lines of a log."""
    if sys.stderr.isatty():
        print(f"\rrow {done} of {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)
    elif done * 10 // of > (done - 1) * 10 // of:
        print(f"row {done} of {of}", file=sys.stderr, flush=True)
