"""MLflow: a database in a folder, or, online, the server that MLFLOW_TRACKING_URI names.

MLflow no longer writes plain folders, so the local store is one SQLite file, with the artifacts beside it. A run has a
tag with its key. If it was written in full it is left alone the next time, else it is removed and written anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from driftline.errors import MissingExtra, UserError
from driftline.exports.rows import settings_of, title_of
from driftline.record import Run
from driftline.registry import register

KEY = "driftline.key"
AT_ONCE = 500  # metrics per request; MLflow takes 1,000
LONGEST = 500  # characters of a setting that every kind of MLflow store takes


@register("sink", "mlflow")
class MLflow:
    """Runs in MLflow: an experiment per benchmark, curves as metrics with steps, settings as parameters."""

    can_send: ClassVar[bool] = True
    look: ClassVar[str] = "mlflow ui --backend-store-uri sqlite:///{folder}/mlflow.db"

    def __init__(self, folder: Path, online: bool = False) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is sent that was not asked for
        try:
            from mlflow import MlflowClient
        except ModuleNotFoundError as error:
            raise MissingExtra("exporting to MLflow", "mlflow") from error
        self._artifacts = None if online else (folder.resolve() / "artifacts").as_uri()
        self._client = MlflowClient(tracking_uri=_address(folder, online))

    def begin(self, run: Run) -> bool:
        self._run = run
        experiment = self._experiment(f"driftline {run.card['run']['benchmark']}")
        for found in self._client.search_runs([experiment], f"tags.`{KEY}` = '{run.key}'"):
            if found.info.status == "FINISHED":
                return False
            self._client.delete_run(found.info.run_id)
        tags = {KEY: run.key, "method": run.method}
        self._id = self._client.create_run(experiment, run_name=title_of(run), tags=tags).info.run_id
        self._describe(run)
        return True

    def log(self, rows: pd.DataFrame) -> None:
        from mlflow.entities import Metric

        when = int((self._run.folder / "card.json").stat().st_mtime * 1000)
        metrics = [
            Metric(_allowed(name), float(value), when, int(step))
            for name, step, value in zip(rows["name"], rows["step"], rows["value"], strict=True)
        ]
        for start in range(0, len(metrics), AT_ONCE):
            self._client.log_batch(self._id, metrics=metrics[start : start + AT_ONCE])

    def end(self) -> None:
        self._client.set_terminated(self._id, "FINISHED")

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            return str(self._client.create_experiment(name, artifact_location=self._artifacts))
        return str(found.experiment_id)

    def _describe(self, run: Run) -> None:
        from mlflow.entities import Param

        settings: list[Any] = [Param(_allowed(key), value[:LONGEST]) for key, value in settings_of(run).items()]
        for start in range(0, len(settings), 100):  # MLflow takes no more at once
            self._client.log_batch(self._id, params=settings[start : start + 100])
        for name in ("card.json", "scores.parquet"):
            if (run.folder / name).exists():
                self._client.log_artifact(self._id, str(run.folder / name))


def _address(folder: Path, online: bool) -> str:
    if not online:
        folder.mkdir(parents=True, exist_ok=True)
        return f"sqlite:///{folder.resolve()}/mlflow.db"
    address = os.environ.get("MLFLOW_TRACKING_URI")
    if not address:
        raise UserError("--online needs to know the server: set MLFLOW_TRACKING_URI, or leave --online out")
    return address


def _allowed(name: str) -> str:
    """A name in the letters that MLflow takes.

    >>> _allowed("scores/accuracy/from 2003 (a=1)")
    'scores/accuracy/from 2003 _a_1_'
    """
    return re.sub(r"[^\w\-. /]", "_", name)
