"""CSV and Parquet: one file per run, named by its key, so exporting again replaces it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pandas as pd

from driftline.io.atomic import write_then_rename
from driftline.io.sanitize import frame_to_csv
from driftline.record.run import Run
from driftline.registry import register


class _Files:
    has_server: ClassVar[bool] = False
    suffix: ClassVar[str]

    def __init__(self, folder: Path, online: bool = False) -> None:
        self._folder = folder

    def begin(self, run: Run) -> bool:
        self._run = run
        self._parts: list[pd.DataFrame] = []
        return True

    def log(self, rows: pd.DataFrame) -> None:
        job = self._run.card.run
        names = {"benchmark": job.benchmark, "data": job.data.display_name, "model": job.model.display_name}
        constants = {"run": self._run.key, **names, "method": self._run.method, "seed": self._run.seed}
        self._parts.append(pd.DataFrame(constants, index=rows.index).join(rows))

    def end(self) -> None:
        with write_then_rename(self._folder / f"{self._run.key}.{self.suffix}") as path:
            self._write(pd.concat(self._parts, ignore_index=True), path)

    def _write(self, frame: pd.DataFrame, path: Path) -> None:
        raise NotImplementedError


@register("exporter", "csv")
class Csv(_Files):
    """One CSV file per run, all with the same columns."""

    suffix = "csv"
    view_command = "duckdb -c \"select * from '{folder}/*.csv'\""

    def _write(self, frame: pd.DataFrame, path: Path) -> None:
        path.write_text(frame_to_csv(frame), encoding="utf-8")


@register("exporter", "parquet")
class Parquet(_Files):
    """One Parquet file per run, all with the same columns."""

    suffix = "parquet"
    view_command = "duckdb -c \"select * from '{folder}/*.parquet'\""

    def _write(self, frame: pd.DataFrame, path: Path) -> None:
        frame.to_parquet(path, index=False)
