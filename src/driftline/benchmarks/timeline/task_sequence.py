"""The protocol of continual learning: task after task, and after each a test on the held-out part of all tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from driftline import registry
from driftline.benchmarks.base import Scenario
from driftline.benchmarks.timeline import scores
from driftline.metrics.confidence import Interval, bootstrap_means, percentile_interval, wilson
from driftline.seeds import Seed
from driftline.streams import AllTaskProbes, Periods, task_stream
from driftline.types import JsonObject, Samples

if TYPE_CHECKING:
    from driftline.benchmarks.timeline.benchmark import Options

METRICS = (
    *("average-accuracy", "forgetting", "backward-transfer", "forward-transfer"),
    *("average-incremental-accuracy", "id"),
)


def lay_out(tasks: Periods, upstream: Samples | None, options: Options, protocol: JsonObject, seed: Seed) -> Scenario:
    """Return the scenario: probes of all tasks before the first step and after each task."""
    first, blur = options.upstream, options.blur
    stream = task_stream(tasks, first, options.step_size, blur, seed)
    probes = AllTaskProbes(tasks, first + options.untested, stream.ends)
    protocol = {
        **protocol,
        "off_diagonal": "held-out samples of the other task",
        "task_ends": list(stream.ends),
        "boundaries": f"blurred ({blur:g})" if blur else "sharp",
        "class_incremental": has_own_classes([part.y for part in tasks.revealed[first:]]),
    }
    return Scenario(stream, probes, upstream, initial_probes=probes.all(), protocol=protocol)


def has_own_classes(labels: Sequence[np.ndarray]) -> bool:
    """Return whether no task has a class of an earlier one.

    >>> has_own_classes([np.array([0, 1]), np.array([2])]), has_own_classes([np.array([0]), np.array([0, 1])])
    (True, False)
    """
    kinds = [np.unique(part) for part in labels]
    return sum(map(len, kinds)) == len(np.unique(np.concatenate(kinds)))


def metrics(protocol: JsonObject) -> dict[str, JsonObject]:
    """Return the metrics; where each task has classes of its own, forward transfer says nothing."""
    return {name: {} for name in METRICS if not (name == "forward-transfer" and protocol["class_incremental"])}


def score(
    probes: pd.DataFrame,
    names: list[str],
    ends: Sequence[int],
    wanted: Mapping[str, JsonObject],
    resamples: int,
    random: np.random.Generator,
) -> Iterator[JsonObject]:
    """Yield A(i,j) per cell, then each metric per task and its mean. Models before the first of `names` do not count.

    `ends`: the steps after which the models of all tasks of the stream were tested.
    """
    models = {-1: 0, **{step: k + 1 for k, step in enumerate(ends[len(ends) - len(names) :])}}
    tested = probes[probes["step"].isin(models)]
    grids = [_answers(tested[tested["probe"] == name], models) for name in names]
    # R^2 may be negative; a model worse than the mean has no skill.
    baseline, *means = np.stack([np.maximum(grid.mean(axis=0), 0) for grid in grids], axis=-1)
    drawn = np.stack([np.maximum(bootstrap_means(grid, resamples, random), 0) for grid in grids], axis=-1)
    A, n = np.array(means), np.array([len(grid) for grid in grids])
    proportions = all(np.isin(grid, (0, 1)).all() for grid in grids)
    shares = wilson(A * n, np.broadcast_to(n, A.shape)) if proportions else percentile_interval(drawn[:, 1:])
    yield from scores.cells("accuracy", names, A, shares, np.broadcast_to(n, A.shape))
    for metric in wanted:
        compute = registry.get("metric", metric).compute
        forward = metric == "forward-transfer"
        result = compute(A, baseline) if forward else compute(A)
        resampled = compute(drawn[:, 1:], drawn[:, 0]) if forward else compute(drawn[:, 1:])
        stats = ("counted_values", "mean", "minimum")
        ends_of = {stat: percentile_interval(getattr(resampled, stat)) for stat in stats}
        if metric in OWN_CELLS:
            ends_of["counted_values"] = Interval(*map(OWN_CELLS[metric], shares))
        yield from scores.per_time(metric, names, result, ends_of, n)


OWN_CELLS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"id": np.diag, "average-accuracy": lambda A: A[-1]}
"""Metrics whose value for a task is one accuracy, which has an interval already."""


def _answers(probes: pd.DataFrame, models: Mapping[int, int]) -> np.ndarray:
    """Return the correctness of each model, in columns, on each example of a task."""
    ids, example = np.unique(probes["id"].to_numpy(), return_inverse=True)
    grid = np.full((len(ids), len(models)), np.nan)
    grid[example, probes["step"].map(models).to_numpy(int)] = probes["correct"].to_numpy(float)
    return grid
