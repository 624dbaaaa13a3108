"""MLflow: a database in a folder, or the server of MLFLOW_TRACKING_URI with `online`.

MLflow no longer writes plain folders, so the local store is one SQLite file, with the artifacts next to it. A run is
tagged with its key. A completely exported run is skipped the next time; a partial one is removed and exported again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from driftline.errors import MissingExtra, UserError
from driftline.exports.rows import flat_settings, run_title
from driftline.record.run import Run
from driftline.registry import register

KEY = "driftline.key"
METRICS_PER_REQUEST = 500  # MLflow accepts 1,000
PARAMS_PER_REQUEST = 100  # the maximum of MLflow
MAX_PARAM_LENGTH = 500  # characters, accepted by every MLflow store


@register("exporter", "mlflow")
class MLflow:
    """MLflow: one experiment per benchmark, curves as metrics with steps, settings as parameters."""

    has_server: ClassVar[bool] = True
    view_command: ClassVar[str] = "mlflow ui --backend-store-uri sqlite:///{folder}/mlflow.db"

    def __init__(self, folder: Path, online: bool = False) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is sent unless the user asks for it
        try:
            from mlflow import MlflowClient
        except ModuleNotFoundError as error:
            raise MissingExtra("exporting to MLflow", "mlflow") from error
        self._artifacts = None if online else (folder.resolve() / "artifacts").as_uri()
        self._client = MlflowClient(tracking_uri=_tracking_uri(folder, online))

    def begin(self, run: Run) -> bool:
        self._run = run
        experiment = self._experiment(f"driftline {run.card.run.benchmark}")
        for existing in self._client.search_runs([experiment], f"tags.`{KEY}` = '{run.key}'"):
            if existing.info.status == "FINISHED":
                return False
            self._client.delete_run(existing.info.run_id)
        tags = {KEY: run.key, "method": run.method}
        self._id = self._client.create_run(experiment, run_name=run_title(run), tags=tags).info.run_id
        self._describe(run)
        return True

    def log(self, rows: pd.DataFrame) -> None:
        from mlflow.entities import Metric

        timestamp = int((self._run.folder / "card.json").stat().st_mtime * 1000)
        metrics = [
            Metric(_valid_name(name), float(value), timestamp, int(step))
            for name, step, value in zip(rows["name"], rows["step"], rows["value"], strict=True)
        ]
        for start in range(0, len(metrics), METRICS_PER_REQUEST):
            self._client.log_batch(self._id, metrics=metrics[start : start + METRICS_PER_REQUEST])

    def end(self) -> None:
        self._client.set_terminated(self._id, "FINISHED")

    def _experiment(self, name: str) -> str:
        experiment = self._client.get_experiment_by_name(name)
        if experiment is None:
            return str(self._client.create_experiment(name, artifact_location=self._artifacts))
        return str(experiment.experiment_id)

    def _describe(self, run: Run) -> None:
        from mlflow.entities import Param

        settings: list[Any] = [
            Param(_valid_name(key), value[:MAX_PARAM_LENGTH]) for key, value in flat_settings(run).items()
        ]
        for start in range(0, len(settings), PARAMS_PER_REQUEST):
            self._client.log_batch(self._id, params=settings[start : start + PARAMS_PER_REQUEST])
        for name in ("card.json", "scores.parquet"):
            if (run.folder / name).exists():
                self._client.log_artifact(self._id, str(run.folder / name))


def _tracking_uri(folder: Path, online: bool) -> str:
    if not online:
        folder.mkdir(parents=True, exist_ok=True)
        return f"sqlite:///{folder.resolve()}/mlflow.db"
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        raise UserError("--online needs a server: set MLFLOW_TRACKING_URI, or omit --online")
    return uri


def _valid_name(name: str) -> str:
    """Return a name with only the characters that MLflow accepts.

    >>> _valid_name("scores/accuracy/from 2003 (a=1)")
    'scores/accuracy/from 2003 _a_1_'
    """
    return re.sub(r"[^\w\-. /]", "_", name)
