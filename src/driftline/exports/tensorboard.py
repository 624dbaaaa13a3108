"""TensorBoard: one folder of events per run, written by TensorBoard's own writer, so torch is not needed.

The name of a folder ends with the key of its run. Exporting a run again replaces its events.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from driftline.errors import MissingExtra
from driftline.exports.rows import flat_settings, run_title
from driftline.io.atomic import disk_errors
from driftline.record.run import Run
from driftline.registry import register


@register("exporter", "tensorboard")
class TensorBoard:
    """TensorBoard event files: curves as scalars, settings and card as texts."""

    has_server: ClassVar[bool] = False
    view_command: ClassVar[str] = "tensorboard --logdir {folder}"

    def __init__(self, folder: Path, online: bool = False) -> None:
        try:
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ModuleNotFoundError as error:
            raise MissingExtra("exporting to TensorBoard", "tensorboard") from error
        self._new_writer = EventFileWriter
        self._folder = folder

    def begin(self, run: Run) -> bool:
        folder = self._folder / run.card.run.benchmark / re.sub(r"[^\w.=-]+", "-", f"{run_title(run)} {run.key}")
        with disk_errors(folder):
            for old in folder.glob("events.out.tfevents.*"):
                old.unlink()
            self._writer = self._new_writer(str(folder))
        self._timestamp = (run.folder / "card.json").stat().st_mtime
        self._add_text("settings", "\n".join(f"    {name}: {value}" for name, value in flat_settings(run).items()))
        self._add_text(
            "card", "\n".join(f"    {line}" for line in json.dumps(run.card.to_dict(), indent=1).splitlines())
        )
        return True

    def log(self, rows: pd.DataFrame) -> None:
        for name, step, value in zip(rows["name"], rows["step"], rows["value"], strict=True):
            self._add_event(int(step), tag=name, simple_value=float(value))

    def end(self) -> None:
        self._writer.close()

    def _add_text(self, name: str, text: str) -> None:
        from tensorboard.plugins.text import metadata
        from tensorboard.util.tensor_util import make_tensor_proto

        kind = metadata.create_summary_metadata(display_name=name, description="")
        self._add_event(0, tag=name, metadata=kind, tensor=make_tensor_proto([text]))

    def _add_event(self, step: int, **value: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        event = Event(wall_time=self._timestamp, step=step, summary=Summary(value=[Summary.Value(**value)]))
        self._writer.add_event(event)
