"""Weights & Biases: written to a folder, and sent to the server only if that is asked for.

A run's key is its id there, so that what is sent twice is one run. Written to a folder again, a run replaces what was
written of it before.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from driftline.atomic import disk_errors
from driftline.errors import MissingExtra
from driftline.exports.rows import is_final, settings_of, title_of
from driftline.record import Run
from driftline.registry import register


@register("sink", "wandb")
class WandB:
    """Runs in Weights & Biases: curves over `step`, final scores as the summary, settings as the configuration."""

    can_send: ClassVar[bool] = True
    look: ClassVar[str] = "wandb sync {folder}/wandb/offline-run-*"

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
        # What this machine is, what it prints and which repository it stands in are not the run's.
        quiet = self._wandb.Settings(
            silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True, x_disable_meta=True
        )
        self._to = self._wandb.init(
            project="driftline",
            id=run.key,
            name=title_of(run),
            group=run.card["run"]["benchmark"],
            config=settings_of(run),
            mode=self._mode,
            dir=str(self._folder),
            settings=quiet,
        )
        self._to.define_metric("step")
        self._to.define_metric("*", step_metric="step")
        self._keep(run)
        return True

    def log(self, rows: pd.DataFrame) -> None:
        final = is_final(rows)
        for step, part in rows[~final].groupby("step", sort=True):
            values = dict(zip(part["name"], part["value"].astype(float), strict=True))
            self._to.log({"step": int(str(step)), **values})
        for name, value in zip(rows["name"][final], rows["value"][final], strict=True):
            self._to.summary[name] = float(value)

    def end(self) -> None:
        self._to.finish()

    def _keep(self, run: Run) -> None:
        """The card and the scores, with their intervals, as files."""
        kept = self._wandb.Artifact(f"driftline-{run.key}", type="record")
        for name in ("card.json", "scores.parquet"):
            if (run.folder / name).exists():
                kept.add_file(str(run.folder / name))
        self._to.log_artifact(kept)
