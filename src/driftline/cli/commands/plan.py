"""`driftline plan`: forecast the cost of a spec."""

from __future__ import annotations

from typing import Annotated

import typer

from driftline.cli import options
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError

What = Annotated[
    list[str] | None,
    typer.Argument(help="As for `driftline run`; or several recipes.", metavar="BENCHMARK|matrix|RECIPES"),
]
ProfileSeconds = Annotated[
    float | None,
    typer.Option(
        help="Limit of profiling in seconds; a tenth of the estimated work if that is less. [default: 20]", min=1
    ),
]


def plan(
    context: typer.Context,
    what: What = None,
    data: options.Data = None,
    model: options.Model = None,
    methods: options.Methods = None,
    seeds: options.Seeds = None,
    budget_macs: options.BudgetMacs = None,
    labels: options.Labels = None,
    set_: options.Set = None,
    device: options.Device = None,
    precision: options.PrecisionName = None,
    profile_seconds: ProfileSeconds = None,
    format: Annotated[str, typer.Option(help="text or json")] = "text",
    runs: options.RunsFolder = None,
    data_dir: options.DataFolder = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Forecast the cost of a benchmark or recipe.

    Stages, fits, multiply-accumulates, disk, and time by the number of workers. Finished stages in the store are
    not counted. Nothing is written there.
    """
    from driftline.cli.printing.forecast import ForecastProgress, forecast_text

    if format not in ("text", "json"):
        raise UserError(f"--format {format}: give text or json")
    names, flags = _split_flags([*(what or []), *context.args])
    if not names:
        raise UserError("give a benchmark, matrix, or recipes to plan")
    with ForecastProgress(" ".join(names), quiet) as progress:
        from driftline.cli.commands.run import spec_content
        from driftline.engine.costs.forecast import PROFILING_SECONDS, forecast
        from driftline.engine.executors.process import keep_freed_memory

        keep_freed_memory()
        settings = options.assignments(set_, device, precision)
        specs = [
            spec_content(name, flags, data, model, methods, seeds, settings, budget_macs, labels) for name in names
        ]
        seconds = profile_seconds or PROFILING_SECONDS
        cost = forecast(*specs, runs=runs, data_dir=data_dir, seconds=seconds, on_profile=progress.watch)
    echo(cost.to_json() if format == "json" else forecast_text(cost))


def _split_flags(words: list[str]) -> tuple[list[str], list[str]]:
    """Split arguments into what to plan and, from the first flag on, options of the benchmark.

    >>> _split_flags(["a.yaml", "b.yaml", "--shifts", "CLR"])
    (['a.yaml', 'b.yaml'], ['--shifts', 'CLR'])
    """
    first = next((k for k, word in enumerate(words) if word.startswith("--")), len(words))
    return words[:first], words[first:]
