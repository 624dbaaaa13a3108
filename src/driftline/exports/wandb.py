"""Weights & Biases: a folder, or the server with `online`.

The key of a run is its id, so a run that is sent twice is one run. Exporting a run to a folder again replaces it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from driftline.errors import MissingExtra
from driftline.exports.rows import flat_settings, is_final, run_title
from driftline.io.atomic import disk_errors
from driftline.record.run import Run
from driftline.registry import register


@register("exporter", "wandb")
class WandB:
    """Weights & Biases: curves over `step`, final scores as summary, settings as configuration."""

    has_server: ClassVar[bool] = True
    view_command: ClassVar[str] = "wandb sync {folder}/wandb/offline-run-*"

    def __init__(self, folder: Path, online: bool = False) -> None:
        try:
            import wandb
        except ModuleNotFoundError as error:
            raise MissingExtra("exporting to Weights & Biases", "wandb") from error
        self._wandb = wandb
        self._folder = folder
        self._mode: Literal["online", "offline"] = "online" if online else "offline"

    def begin(self, run: Run) -> bool:
        with disk_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            for old in self._folder.glob(f"wandb/offline-run-*-{run.key}"):
                shutil.rmtree(old)
        # The machine, its output and its repository are not part of the run.
        settings = self._wandb.Settings(
            silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True, x_disable_meta=True
        )
        self._wandb_run = self._wandb.init(
            project="driftline",
            id=run.key,
            name=run_title(run),
            group=run.card.run.benchmark,
            config=flat_settings(run),
            mode=self._mode,
            dir=str(self._folder),
            settings=settings,
        )
        self._wandb_run.define_metric("step")
        self._wandb_run.define_metric("*", step_metric="step")
        self._log_files(run)
        return True

    def log(self, rows: pd.DataFrame) -> None:
        final = is_final(rows)
        for step, part in rows[~final].groupby("step", sort=True):
            values = dict(zip(part["name"], part["value"].astype(float), strict=True))
            self._wandb_run.log({"step": int(str(step)), **values})
        for name, value in zip(rows["name"][final], rows["value"][final], strict=True):
            self._wandb_run.summary[name] = float(value)

    def end(self) -> None:
        self._wandb_run.finish()

    def _log_files(self, run: Run) -> None:
        """Log the card and the scores with their intervals as files."""
        artifact = self._wandb.Artifact(f"driftline-{run.key}", type="record")
        for name in ("card.json", "scores.parquet"):
            if (run.folder / name).exists():
                artifact.add_file(str(run.folder / name))
        self._wandb_run.log_artifact(artifact)
