"""Figure `examples`: an image per class and step."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import altair as alt
import numpy as np
import pandas as pd

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.figures.axes import TEXT, Chart, independent_scales, names, panels
from driftline.report.figures.base import Figure, Row, figure, to_table

PICTURE = 56  # pixels in the chart
MIN_HEIGHT = 64  # pixels of a PNG
MAX_CLASSES = 20
COLOR_TYPES = {1: 0, 3: 2}  # of a PNG, by number of channels


@figure("examples", benchmarks=("seq-to-final",))
@dataclass(frozen=True)
class Examples(Figure):
    """An image per class and step, with its label at that step; of the same originals where possible.

    Where steps draw different samples, or are real periods, it is the first sample of each label. `picture` is a PNG as
    a data URI.
    """

    needs: ClassVar[str] = "the data"

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        rows: list[Row] = []
        errors = []
        for group in self.groups(record):
            run = group.runs[0]
            try:
                rows += [{"panel": group.title, "seed": run.seed, **row} for row in _pictures(run, data_dir)]
            except UserError as error:  # other groups may have images
                errors.append(error)
        if not rows:
            raise errors[0]
        return to_table(rows, [])

    def chart(self, frame: pd.DataFrame) -> Chart:
        x = alt.X("column:O", axis=None)
        axis = alt.Axis(title=None, domain=False, ticks=False, labelLimit=260)
        in_order = names(frame.sort_values("step", kind="stable"), "time")  # panels share names of steps
        y = alt.Y("time:N", sort=in_order, axis=axis)
        down, across = (int(frame.groupby("panel")[name].nunique().max()) for name in ("time", "column"))
        base = alt.Chart(width=(PICTURE + 8) * across, height=(PICTURE + 22) * down).encode(x=x, y=y)
        pictures = base.mark_image(width=PICTURE, height=PICTURE, yOffset=-6, aria=False).encode(url="picture:N")
        labels = base.mark_text(dy=PICTURE // 2 + 3, fontSize=9, color=TEXT, limit=PICTURE + 6).encode(
            text=alt.Text("label:N")
        )
        return independent_scales(panels(pictures + labels, frame, ["panel"]), "y")


def _pictures(run: Run, data_dir: Path | None) -> Iterable[Row]:
    from driftline.engine.build import DatasetCache, build_scenario
    from driftline.spec.job import Job
    from driftline.tasks import Classification

    job = Job.model_validate({**run.card.run.to_dict(), "label": run.method})
    dataset, layout = build_scenario(job, DatasetCache(data_dir))
    images, task = dataset.samples.x, dataset.task
    if getattr(images, "ndim", 0) != 4 or images.shape[3] not in COLOR_TYPES or not isinstance(task, Classification):
        raise UserError(f"dataset '{dataset.name}' has no gray or color images of classes, so there is nothing to draw")
    white = 1.0 if images.dtype.kind == "f" and images.max(initial=0) <= 1 else 255.0
    for step, time, x, y, origin in _steps(dataset, layout.stream):
        for k in range(len(y)):
            place = {"step": step, "time": time, "column": int(origin[k]), "label": str(task.classes[y[k]])}
            yield {**place, "picture": f"data:image/png;base64,{base64.b64encode(png(x[k], white)).decode()}"}


def _steps(dataset: Dataset, stream: Any) -> Iterator[tuple[int, str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the number and name of each step, its images, their labels, and the columns they are placed in."""
    from driftline.shifts import apply_to_images, apply_to_labels, white_level

    carried = getattr(stream, "shifts", None)
    if not carried or getattr(stream, "original_time", False) or any(s.target == "sampling" for s in carried[-1]):
        for t in range(len(stream)):
            samples = stream[t].samples[_first_of_each(stream[t].samples.y)]
            yield t, stream[t].time, samples.x, samples.y, samples.y
        return
    rows = stream.rows[0].train
    originals = dataset.samples[rows[_first_of_each(dataset.samples.y[rows])]]
    for t, shifts in enumerate(carried):
        noise = stream.seed.child("noise", t).numpy()
        x = apply_to_images(shifts, originals.x, originals.y, noise, white_level(dataset.samples.x))
        yield t, stream.names[t], x, apply_to_labels(shifts, originals.y, dataset.task.width), originals.y


def _first_of_each(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_index=True)[1][:MAX_CLASSES]


def png(image: np.ndarray, white: float = 255.0) -> bytes:
    """Return an image (height, width, 1 or 3 channels) as a PNG; small ones are enlarged pixel by pixel."""
    pixels = np.rint(image * (255.0 / white)).clip(0, 255).astype(np.uint8)
    times = max(1, -(-MIN_HEIGHT // len(pixels)))
    pixels = pixels.repeat(times, axis=0).repeat(times, axis=1)
    height, width, channels = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPES[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    )
