"""`driftline collapse-2d`: the experiment in two dimensions that shows adaptation and collapse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.places import check_output
from driftline.cli.printing.terminal import echo


def collapse_2d(
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            callback=check_output,
            help=".svg, .pdf, .png or .html; the numbers come beside it as CSV.",
        ),
    ] = Path("collapse-2d.svg"),
    samples: Annotated[
        int | None, typer.Option(help="How many points are drawn. [default: infinitely many, computed exactly]", min=16)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the points that are drawn.")] = 0,
    steps: Annotated[int, typer.Option(help="How many steps the scales are adapted for.", min=1)] = 60_000,
) -> None:
    """Batch norm and a logistic regression adapt to two corruptions of the same classes; one of them ends badly."""
    import pandas as pd

    from driftline.benchmarks.collapse_2d import NOISE, best_linear, minimize_entropy
    from driftline.report.collapse import collapse_chart
    from driftline.report.figures.export import check_format, save
    from driftline.seeds import Seed

    check_format(output)
    every = max(1, steps // 600)
    parts = [minimize_entropy(k, samples=samples, seed=Seed(seed), steps=steps, record_every=every) for k in NOISE]
    for condition, part in zip(NOISE, parts, strict=True):
        accuracy, scales = part["accuracy"], part["scales"]
        echo(
            f"condition {condition}: accuracy {accuracy.iloc[0]:.3f} at the start, {accuracy.max():.3f} at best (step "
            f"{part['step'].iloc[int(accuracy.argmax())]:,}), {accuracy.iloc[-1]:.3f} at the end; best line "
            f"{best_linear(condition):.3f}; scales {scales.iloc[0]:.1f} to {scales.iloc[-1]:.1f}"
        )
    frame = pd.concat(parts, ignore_index=True)
    table = save(frame, collapse_chart(frame), output)
    echo(f"{output}, and its numbers in {table}")
