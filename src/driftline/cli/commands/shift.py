"""`driftline shift`: how far each step of a sequence is from the final one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli import options
from driftline.cli.printing.terminal import echo

if TYPE_CHECKING:
    from driftline.engine.build import DatasetCache
    from driftline.spec.job import Job
    from driftline.types import JsonObject

BENCHMARK = "seq-to-final"


def shift(
    data: Annotated[str, typer.Option(help="Name of a dataset of images.")],
    shifts: Annotated[str, typer.Option(help="As for `driftline run seq-to-final`; several separated by semicolons.")],
    seeds: Annotated[int, typer.Option(help="Number of seeds: 3 means 0, 1 and 2.", min=1)] = 1,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="part.key=value, e.g. seq-to-final.row_order=reference")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", callback=options.check_output, help="A CSV file to write as well.")
    ] = None,
    data_dir: options.DataFolder = None,
) -> None:
    """Print the distance of every step's images from the final test images, relative to that of the final step.

    Optimal transport (W2) on principal components: of all inputs, and within each label. Needs the extra `transport`.
    """
    import pandas as pd

    from driftline.engine.build import DatasetCache
    from driftline.io.atomic import write_bytes
    from driftline.io.sanitize import frame_to_csv

    datasets = DatasetCache(data_dir)
    rows: list[JsonObject] = []
    for name in shifts.split(";"):
        for job in _jobs(data, name, seeds, set_):
            rows += _measure(job, datasets)
    if output is not None:
        write_bytes(output, frame_to_csv(pd.DataFrame(rows)).encode())
        echo(f"{output}: {len(rows)} distances")


def _jobs(data: str, shifts: str, seeds: int, assignments: list[str] | None) -> list[Job]:
    """Return a job per seed; its method is of no importance."""
    from driftline import spec

    content = {"benchmark": BENCHMARK, "data": data, "methods": "baseline", "seeds": seeds}
    content = spec.apply_overrides({**content, BENCHMARK: {"shifts": shifts, "oracle": 0}}, assignments or [])
    return spec.parse(content).jobs(default_model="linear")


def _measure(job: Job, datasets: DatasetCache) -> list[JsonObject]:
    """Print the distances of one sequence, and return them as scores."""
    from driftline.engine.build import build_scenario
    from driftline.streams import ShiftSequence
    from driftline.streams.seq_to_final.distances import sequence_distances

    steps = build_scenario(job, datasets)[1].stream
    assert isinstance(steps, ShiftSequence)
    found = sequence_distances(steps)
    setting = str(job.options["shifts"])
    title = f"{job.data.name}, {setting}, seed {job.seed}"
    echo(f"{title}: {found.components} components, {found.explained:.1%} of the variance")
    echo("step                    inputs (W2)  given the label")
    rows: list[JsonObject] = []
    for t, name in enumerate(steps.names):
        ratios = (float(found.covariate.ratio[t]), float(found.conditional.ratio[t]))
        echo(f"{name:22s}  {ratios[0]:11.3f}  {ratios[1]:15.3f}")
        step = name.partition(" ")[0] if steps.original_time else f"step {t}"
        for metric, value in zip(("covariate W2 ratio", "conditional W2 ratio"), ratios, strict=True):
            row = {"setting": setting, "method": step, "seed": job.seed, "metric": metric, "stat": "mean"}
            rows.append({**row, "value": value, "n": int(found.covariate.n[t]), "unit": "examples"})
    return rows
