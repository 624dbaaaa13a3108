"""Images in a given order, each clean or under a corruption that the file names."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.order_file import Order, read_order
from driftline.streams.test_time.calibration import MAX_SEVERITY
from driftline.streams.test_time.schedule import CorruptionPair, Schedule, corruption_names
from driftline.streams.test_time.stream import CorruptionStream, Places, corruption_stream
from driftline.types import JsonObject


@dataclass(frozen=True, eq=False, kw_only=True)
class OrderedImages(CorruptionStream):
    """Steps of `batch` images in a given order; a sample's group is the number of its corruption and severity."""

    order: Order

    @cached_property
    def protocol(self) -> JsonObject:
        """The description of the stream on the card."""
        drawn = {
            name: value for name, value in super().protocol.items() if name not in ("images_per_point", "schedule")
        }
        found, counts = np.unique(self.points(np.arange(self.n_images)), return_counts=True)
        points = [str(self.schedule.point(number)) for number in found.tolist()]
        return {
            **drawn,
            "stream": self.order.name,
            "source_images": len(self.order.listed),
            "corruptions": dict(zip(points, counts.tolist(), strict=True)),
        }


def ordered_images(
    dataset: Dataset,
    file: str,
    *,
    batch: int = 64,
    severity: float = MAX_SEVERITY,
    seed: Seed = Seed(0),
    crop: bool | None = None,
    jpeg: int | None = None,
    frost: Path | str | None = None,
) -> OrderedImages:
    """Return the images of a dataset in the order of a file; see `streams.order_file`.

    A row may name a `corruption`, none or `clean` for the image as it is, and its `severity`, else the one given here.
    The seed decides the noise. For the other settings see `corruption_stream`.
    """
    order = read_order(file, dataset, ("corruption", "severity"))
    if dataset.test is not None and not dataset.test[order.rows].all():
        row = order.rows[~dataset.test[order.rows]][0]
        raise UserError(f"{file}: the image {dataset.samples.id[row]} is one to train on, not of the test set")
    points, numbers = _points(order, severity)
    made = corruption_stream(
        dataset.samples,
        Schedule(points),
        n_images=len(order.rows),
        batch=batch,
        seed=seed,
        crop=crop,
        jpeg=jpeg,
        frost=frost,
    )
    made = replace(made, places=Places(numbers, order.rows))
    same = {field.name: getattr(made, field.name) for field in fields(made) if field.init}
    return OrderedImages(**same, order=order)


def _points(order: Order, severity: float) -> tuple[tuple[CorruptionPair, ...], np.ndarray]:
    """Return the different corruptions of an order, and the number of each image's."""
    columns = order.columns
    names = columns["corruption"].str.strip().replace("clean", "") if "corruption" in columns else ""
    if "severity" in columns and "corruption" not in columns:
        raise UserError(f"{order.name} has a column 'severity' but no column 'corruption'")
    severities = order.numbers("severity", severity) if "severity" in columns else severity
    points = pd.DataFrame({"name": names, "severity": severities}, index=range(len(order.rows)))
    corruption_names([name for name in points["name"].unique() if name] or "uniform")
    if not points["severity"].between(0, MAX_SEVERITY).all():
        raise UserError(f"{order.name}: a severity is not from 0 to {MAX_SEVERITY:g}")
    clean = (points["name"] == "") | (points["severity"] == 0)
    points = pd.DataFrame({"name": points["name"].mask(clean, ""), "severity": points["severity"].mask(clean, 0.0)})
    numbers = points.groupby(["name", "severity"], sort=False).ngroup().to_numpy()
    distinct = points.drop_duplicates().itertuples(index=False)
    return tuple(CorruptionPair(name, float(s), "", 0.0) for name, s in distinct), numbers
