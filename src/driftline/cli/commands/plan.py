"""`driftline plan`: forecast the cost of a spec."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli import options
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError
from driftline.types import JsonObject


def plan(
    context: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(help="As for `driftline run`; or several recipes.", metavar="BENCHMARK|matrix|RECIPES"),
    ] = None,
    data: options.Data = None,
    model: options.Model = None,
    methods: options.Methods = None,
    seeds: options.Seeds = None,
    set_: options.Set = None,
    device: options.Device = None,
    precision: options.PrecisionName = None,
    profile_seconds: Annotated[
        float | None,
        typer.Option(
            help="Limit of profiling in seconds; a tenth of the estimated work if that is less. [default: 20]", min=1
        ),
    ] = None,
    format: Annotated[str, typer.Option(help="text or json")] = "text",
    runs: options.RunsFolder = None,
    data_dir: options.DataFolder = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Forecast the cost of a benchmark or recipe: stages, fits, multiply-accumulates, disk, and time by workers.

    Finished stages in the store are not counted. Nothing is written there.
    """
    from driftline.cli.printing.forecast import Progress, forecast_text
    from driftline.engine.costs.forecast import PROFILING_SECONDS, forecast
    from driftline.engine.executors.process import keep_freed_memory

    if format not in ("text", "json"):
        raise UserError(f"--format {format}: give text or json")
    named, given = _split_flags([*(what or []), *context.args])
    if not named:
        raise UserError("driftline plan needs a benchmark's name, matrix, or recipes")
    keep_freed_memory()
    with Progress(quiet) as progress:
        settings = [*(set_ or []), *options.device_assignments(device, precision)]
        specs = [_spec_content(one, given, data, model, methods, seeds, settings) for one in named]
        found = forecast(
            *specs,
            runs=runs,
            data_dir=data_dir,
            seconds=profile_seconds or PROFILING_SECONDS,
            on_profile=progress.watch,
        )
    echo(found.to_json() if format == "json" else forecast_text(found))


def _split_flags(words: list[str]) -> tuple[list[str], list[str]]:
    """Split arguments into what to plan and, from the first flag on, options of the benchmark.

    >>> _split_flags(["a.yaml", "b.yaml", "--shifts", "CLR"])
    (['a.yaml', 'b.yaml'], ['--shifts', 'CLR'])
    """
    first = next((k for k, word in enumerate(words) if word.startswith("--")), len(words))
    return words[:first], words[first:]


def _spec_content(
    what: str,
    given: list[str],
    data: str | None,
    model: str | None,
    methods: str | None,
    seeds: int | None,
    assignments: list[str],
) -> JsonObject:
    """Return the content of the spec, as `driftline run` reads it from the same arguments."""
    from driftline import spec as spec_
    from driftline.cli.commands import run, run_matrix

    if run_matrix.is_matrix(what):
        if data or model:
            raise UserError("a matrix has data and a model in each of its columns: set them in a recipe")
        return run_matrix.content(what, given, methods, seeds, assignments)
    content = run.content(what, data, model, methods, seeds)
    own = run.benchmark_options(given, str(content.get("benchmark")))
    return spec_.apply_overrides(content, [*own, *assignments])
