"""The scores of a finished record: those of the method, and of a constant answer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from driftline import registry
from driftline.benchmarks.trivial_baseline import trivial_scores
from driftline.record.card import Card, write_card
from driftline.record.parquet import write_rows
from driftline.record.run import Run


def write_scores(folder: Path, description: Card) -> None:
    """Score a record, and write its scores and its card."""
    write_card(folder, description)
    benchmark, run = registry.get("benchmark", description.run.benchmark)(), Run(folder)
    scores = {"scores": benchmark.score(run)}
    if run.is_final:
        scores["trivial_scores"] = trivial_scores(benchmark, run)
    for name, frame in scores.items():
        write_rows(folder / f"{name}.parquet", [pa.Table.from_pandas(frame, preserve_index=False)])
    write_card(folder, description)  # again, with the scores that were computed from the rest
