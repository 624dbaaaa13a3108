"""Composition of a stream of queries: all queries, and the errors of the upstream model, by cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driftline.data import data_folders
from driftline.data.text_to_text import read_released_stream
from driftline.errors import UserError
from driftline.metrics import refinement
from driftline.report.analysis.curves import Series
from driftline.report.analysis.groups import Group

COLUMNS = ["time", "part", "place", "count"]
QUERIES, ERRORS = "queries", "errors of the upstream model"


@dataclass(frozen=True, eq=False)
class Composition:
    """Counts by step and cluster; errors are known only with the answers of the upstream model."""

    title: str
    times: list[str]
    clusters: list[str]
    """The first is upstream."""
    queries: np.ndarray
    errors: np.ndarray | None = None

    def __iter__(self) -> Iterator[tuple[str, Series]]:
        """Iterate over the parts, each with its name."""
        for name, counts in ((QUERIES, self.queries), (ERRORS, self.errors)):
            if counts is not None:
                rows = [[self.times[t], self.clusters[k], int(k), int(counts[t, k])] for t, k in np.argwhere(counts)]
                yield name, Series(COLUMNS, rows)

    @property
    def satisfaction(self) -> np.ndarray:
        """CSR of the upstream model by step: the share of all queries so far that it answers correctly."""
        assert self.errors is not None
        asked = self.queries.sum(axis=1)
        curve: np.ndarray = refinement.cumulative_success(asked - self.errors.sum(axis=1), asked).values
        return curve


def of_group(group: Group) -> Composition | None:
    """Return the composition of a group's first stream of queries, with errors if the frozen model was run."""
    baseline = group.runs_of(group.baseline) if group.baseline else ()
    run = (baseline or group.runs)[0]
    protocol = run.card.protocol
    if "composition" not in protocol:
        return None
    title, times = f"stream {protocol['stream']}", [str(name) for name in protocol["periods"]]
    clusters, queries = protocol["clusters"], np.array(protocol["composition"])
    if not baseline:
        return Composition(title, times, clusters, queries)
    steps = [frame for _, frame in run.table("answers").groupby("step")]
    groups, wrong = [s["group"] for s in steps], [s["correct"] < 1 for s in steps]
    return Composition(title, times, clusters, queries, refinement.composition(groups, len(clusters), keep=wrong))


def of_file(name: Path, data_dir: Path | None = None) -> Composition:
    """Return the composition of a stream that was released as a file with the upstream model's answers.

    `name` is a path, or the name of a file in the data folders. The set of the first query is upstream.
    """
    candidates = (name, *(folder / name for folder in data_folders(data_dir)))
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise UserError(
            f"no file {name}: a released stream is a JSON list of time steps, given as a path or by its name in a data "
            "folder ($DRIFTLINE_DATA, --data-dir)"
        )
    dataset, steps = read_released_stream(path, path.name)
    if dataset.published_answers is None:
        raise UserError(f"{path} does not hold a model's answer to every query, so its errors are not known")
    samples, clusters = dataset.samples, list(dataset.clusters or ())
    wrong = dataset.task.correct(dataset.published_answers, samples.y) < 1
    groups = [np.asarray(samples.group)[rows] for rows in steps]
    queries = refinement.composition(groups, len(clusters))
    errors = refinement.composition(groups, len(clusters), keep=[wrong[rows] for rows in steps])
    return Composition(path.name, [str(t + 1) for t in range(len(steps))], clusters, queries, errors)
