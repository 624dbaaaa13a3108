"""Disagreement of methods in a range of steps: in their answers, or by a metric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np

from driftline.errors import UserError, unknown_name
from driftline.metrics import refinement
from driftline.report.analysis.aggregate import SHARE
from driftline.report.analysis.curves import time_names
from driftline.report.analysis.estimates import difference_bounds, estimate_from_seeds
from driftline.report.analysis.groups import Group
from driftline.types import JsonObject

ANSWERS = "different answers"
STEP_RANGES = ((10, 20), (30, 40))  # of Figure 6 of the paper

StepRange = tuple[int, int]
"""The first and the last step, from 1."""
Pairs = Mapping[tuple[str, str], tuple[float, int]]
"""A number for each pair of methods, and the number of queries or steps behind it."""


def parse_step_ranges(text: str | None, steps: int) -> tuple[StepRange, ...]:
    """Parse ranges of steps; the default is those of the paper, or two halves if the stream is shorter.

    >>> parse_step_ranges("1-5, 8-8", 10), parse_step_ranges(None, 50), parse_step_ranges(None, 7)
    (((1, 5), (8, 8)), ((10, 20), (30, 40)), ((1, 3), (4, 7)))
    """
    if text is None:
        if steps >= STEP_RANGES[-1][1]:
            return STEP_RANGES
        return ((1, steps // 2), (steps // 2 + 1, steps)) if steps > 1 else ((1, 1),)
    matches = [re.fullmatch(r"(\d+)-(\d+)", part.strip()) for part in text.split(",")]
    ranges = [(int(match[1]), int(match[2])) for match in matches if match]
    if len(ranges) < len(matches):
        raise UserError(f"step ranges are given as 10-20,30-40 (first and last step of each), not as '{text}'")
    for first, last in ranges:
        if not 1 <= first <= last <= steps:
            raise UserError(f"step range {first}-{last} is not within the steps 1 to {steps}")
    return tuple(ranges)


def disagreement(group: Group, ranges: Sequence[StepRange], metric: str | None = None) -> Iterator[JsonObject]:
    """Yield a row for each pair of methods and range of steps, means over common seeds.

    The value is the share of different answers; with a metric, the first method minus the other.
    """
    by_seed = _metric_differences(group, ranges, metric) if metric else _different_answers(group, ranges)
    within = difference_bounds(metric) if metric else SHARE
    for steps in ranges:
        for a, b in permutations(group.methods, 2):
            known = {seed: pairs[steps][a, b] for seed, pairs in by_seed.items() if (a, b) in pairs[steps]}
            if known:
                mean = estimate_from_seeds({seed: value for seed, (value, _) in known.items()}, within)
                counts = {"seeds": len(known), "n": min(n for _, n in known.values())}
                number = {"value": mean.value, "low": mean.low, "high": mean.high, **counts}
                yield {"steps": f"t = {steps[0]} to {steps[1]}", "method": a, "other": b, **number}


def _different_answers(group: Group, ranges: Sequence[StepRange]) -> dict[int, dict[StepRange, Pairs]]:
    """Return the share of queries that two methods answer differently, before they learn from them."""
    answers: dict[int, dict[str, list[np.ndarray]]] = {}
    for run in group.runs:
        table = run.table("answers")
        if not table.empty:
            steps = [frame["prediction"].to_numpy() for _, frame in table.groupby("step")]
            answers.setdefault(run.seed, {})[group.labels[run.key]] = steps
    return {seed: {steps: _pairs(found, steps) for steps in ranges} for seed, found in answers.items()}


def _pairs(answers: Mapping[str, list[np.ndarray]], steps: StepRange) -> Pairs:
    shares = refinement.pairwise_disagreement(answers, steps[0] - 1, steps[1] - 1)
    counts = {method: sum(map(len, by_step[steps[0] - 1 : steps[1]])) for method, by_step in answers.items()}
    return {(a, b): (float(shares[i, j]), counts[a]) for (i, a), (j, b) in permutations(enumerate(answers), 2)}


def _metric_differences(group: Group, ranges: Sequence[StepRange], metric: str) -> dict[int, dict[StepRange, Pairs]]:
    """Return differences of the mean of a metric over the steps of a range at which it is known."""
    scores = group.scores
    scores = scores[(scores["stat"] == "each") & scores["tau"].isna() & scores["value"].notna()]
    if metric not in set(scores["metric"]):
        raise unknown_name("metric over time", metric, sorted(set(scores["metric"])))
    scores = scores[scores["metric"] == metric]
    scores = scores.assign(step=scores["time"].map({name: k for k, name in enumerate(time_names(group), 1)}))
    found: dict[int, dict[StepRange, Pairs]] = {}
    for steps in ranges:
        within = scores[scores["step"].between(*steps)]
        for seed in scores["seed"].unique():
            known = within[within["seed"] == seed].groupby("method")["value"].agg(["mean", "size"])
            means, counts = known["mean"].to_dict(), known["size"].to_dict()
            pairs = {(a, b): (means[a] - means[b], int(min(counts[a], counts[b]))) for a, b in permutations(means, 2)}
            found.setdefault(int(seed), {})[steps] = pairs
    return found
