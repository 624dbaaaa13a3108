"""NED's Table 2 and Figure 4: samples and classes of its test sequences; and what time alone detects (Table 7)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from driftline.data import data_folders
from driftline.io import bounded_files
from driftline.io.locate import file_errors, locate
from driftline.metrics.novelty import time_baseline, unseen_flags
from driftline.types import JsonObject

NOTE = "every label of the three published test sequences"
FILE = "ned/label_sequences.npz"
ADVICE = "It holds S3_labels, S3_novel and so on of github.com/RAIVNLab/FLUID: a class per sample, and which are novel."
SEQUENCES = (3, 4, 5)
METHOD = "published labels"


def scores(data_dir: Path | None) -> list[JsonObject]:
    """Return the counts of each sequence, and the scores of time as a detector with the sequences as seeds."""
    return [row for number in SEQUENCES for row in _sequence(number, *labels(number, data_dir))]


def labels(number: int, data_dir: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the class of each sample of a sequence, and which classes are novel."""
    path = locate(data_folders(data_dir), [FILE], "NED's sequences", ADVICE)
    with file_errors(path, "an npz with the labels of NED's sequences"):
        content = bounded_files.read_npz(path)
        return content[f"S{number}_labels"], content[f"S{number}_novel"]


def _sequence(number: int, classes: np.ndarray, novel: np.ndarray) -> Iterator[JsonObject]:
    sizes = np.unique(classes, return_counts=True)[1]
    counts: list[tuple[str, str, float]] = [("samples", "sum", len(classes)), ("classes", "sum", len(sizes))]
    counts += [("class-samples", stat, float(getattr(np, stat)(sizes))) for stat in ("min", "median", "max")]
    for metric, stat, value in counts:
        row = {"setting": f"sequence {number}", "method": METHOD, "seed": 0, "metric": metric, "stat": stat}
        yield {**row, "value": value}
    unseen = unseen_flags(classes, np.flatnonzero(~novel))
    clock = time_baseline(unseen)
    for metric, value in (("clock-auroc", clock.auroc), ("clock-f1", clock.f1.value)):
        row = {"setting": "sequences 3 to 5", "method": METHOD, "seed": number, "metric": metric, "stat": "mean"}
        yield {**row, "value": value, "n": int(unseen.sum()), "unit": "classes"}
