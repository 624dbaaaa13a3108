"""`driftline calibrate`: measure the accuracy of a model under each pair of corruptions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli import options
from driftline.cli.printing.terminal import echo

if TYPE_CHECKING:
    from driftline.spec.job import Job
    from driftline.types import JsonObject

BENCHMARK = "test-time"

Output = Annotated[Path, typer.Option("-o", "--output", callback=options.check_output, help="The file to write.")]
Data = Annotated[str, typer.Option(help="Name of a dataset.")]
Images = Annotated[int, typer.Option(help="Number of images per entry, or all if there are fewer.", min=1)]
Levels = Annotated[
    int, typer.Option(help="Number of severities including 0; 11 takes a quarter of the time of 21.", min=2)
]
Corruptions = Annotated[str, typer.Option(help="easy, medium, hard or uniform, or names separated by commas.")]
ModelSeed = Annotated[int, typer.Option(help="Seed of the model, the images and the noise.", min=0)]
Updates = Annotated[int | None, typer.Option(help="As for `driftline run test-time`: 0 for a pretrained model.", min=0)]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="part.key=value, e.g. model.weights=x.pth or data.size=256")
]
Frost = Annotated[
    Path | None, typer.Option(help="A folder with ImageNet-C's photographs of frost. [default: synthetic frost]")
]
Workers = Annotated[int, typer.Option(help="Number of worker processes. Results are identical for any value.", min=1)]


def calibrate(
    output: Output,
    data: Data,
    model: options.Model = None,
    images: Images = 5000,
    levels: Levels = 21,
    corruptions: Corruptions = "uniform",
    seed: ModelSeed = 0,
    upstream_updates: Updates = None,
    set_: Set = None,
    device: options.Device = None,
    frost: Frost = None,
    jobs: Workers = 1,
    runs: options.RunsFolder = None,
    data_dir: options.DataFolder = None,
    quiet: options.Quiet = False,
) -> None:
    """Measure the accuracy of a model under pairs of corruptions.

    Streams of constant difficulty are made from the file. The same command resumes an interrupted calibration.
    """
    from driftline.calibration.run import calibrate_model
    from driftline.cli.progress import Progress
    from driftline.engine.executors.process import keep_freed_memory
    from driftline.store.store import Store
    from driftline.streams.test_time.schedule import corruption_names

    keep_freed_memory()
    with Progress(quiet) as progress:
        matrices = calibrate_model(
            _job({"data": data, "model": model, "seeds": [seed]}, upstream_updates, set_, device, data_dir),
            corruption_names(corruptions),
            output,
            images=images,
            levels=levels,
            store=Store.create(runs),
            data_dir=data_dir,
            frost=frost,
            jobs=jobs,
            on_plan=progress.begin,
            on_event=progress.show,
        )
    if not quiet:
        echo(f"{output}: {len(matrices.by_pair)} matrices of {matrices.levels} x {matrices.levels} accuracies")


def _job(
    content: JsonObject,
    updates: int | None,
    assignments: list[str] | None,
    device: str | None,
    data_dir: Path | None,
) -> Job:
    """Return the run whose initial model is calibrated: that of a method that never changes it."""
    from driftline import data, spec

    stream = {} if updates is None else {"upstream_updates": updates}
    content = {**content, "benchmark": BENCHMARK, BENCHMARK: stream, "methods": "frozen"}
    parsed = spec.parse(spec.apply_overrides(content, options.assignments(assignments, device, precision=None)))
    suits = "" if parsed.model else data.load(parsed.data.name, parsed.data.settings, data.data_folders(data_dir)).model
    return parsed.jobs(default_model=suits)[0]
