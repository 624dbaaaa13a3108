"""How much each two methods of a group differ in a span of steps: in their answers, or by a metric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from driftline.errors import UserError, unknown
from driftline.metrics import refinement
from driftline.report.analysis.aggregate import ANY, DIFFERENCE, SHARE
from driftline.report.analysis.curves import times
from driftline.report.analysis.gains import mean_of
from driftline.report.analysis.groups import Group
from driftline.report.analysis.result_table import is_share

ANSWERS = "different answers"
SPANS = ((10, 20), (30, 40))  # of the paper's Figure 6

Span = tuple[int, int]
"""The first and the last step, from 1."""
Matrix = Mapping[tuple[str, str], tuple[float, int]]
"""A number for each two methods, and how many queries or steps it rests on."""


def spans_of(text: str | None, steps: int) -> tuple[Span, ...]:
    """Spans as they are written, or those of the paper; of a stream that is too short for these, its halves.

    >>> spans_of("1-5, 8-8", 10), spans_of(None, 50), spans_of(None, 7)
    (((1, 5), (8, 8)), ((10, 20), (30, 40)), ((1, 3), (4, 7)))
    """
    if text is None:
        return (
            SPANS if steps >= SPANS[-1][1] else ((1, steps // 2), (steps // 2 + 1, steps)) if steps > 1 else ((1, 1),)
        )
    found = [re.fullmatch(r"(\d+)-(\d+)", part.strip()) for part in text.split(",")]
    spans = [(int(match[1]), int(match[2])) for match in found if match]
    if len(spans) < len(found):
        raise UserError(f"spans are given as 10-20,30-40 (the first and the last step of each), not as '{text}'")
    for first, last in spans:
        if not 1 <= first <= last <= steps:
            raise UserError(f"the span {first}-{last} is not within the steps 1 to {steps}")
    return tuple(spans)


def rows(group: Group, spans: Sequence[Span], metric: str | None = None) -> Iterator[dict[str, Any]]:
    """How far each two methods are apart in each span, over common seeds; by a metric, the first less the other."""
    by_seed = _scored(group, spans, metric) if metric else _answered(group, spans)
    within = (DIFFERENCE if is_share(metric) else ANY) if metric else SHARE
    for span in spans:
        for one, other in permutations(group.methods, 2):
            known = {seed: found[span][one, other] for seed, found in by_seed.items() if (one, other) in found[span]}
            if known:
                cell = mean_of({seed: value for seed, (value, _) in known.items()}, within)
                counts = {"seeds": len(known), "n": min(n for _, n in known.values())}
                number = {"value": cell.value, "low": cell.low, "high": cell.high, **counts}
                yield {"span": f"t = {span[0]} to {span[1]}", "method": one, "other": other, **number}


def _answered(group: Group, spans: Sequence[Span]) -> dict[int, dict[Span, Matrix]]:
    """The share of queries that two methods answer differently, before they learn from them."""
    said: dict[int, dict[str, list[np.ndarray]]] = {}
    for run in group.runs:
        answers = run.table("answers")
        if not answers.empty:
            steps = [frame["prediction"].to_numpy() for _, frame in answers.groupby("step")]
            said.setdefault(run.seed, {})[group.labels[run.key]] = steps
    return {seed: {span: _matrix(found, span) for span in spans} for seed, found in said.items()}


def _matrix(said: Mapping[str, list[np.ndarray]], span: Span) -> Matrix:
    differing = refinement.differences(said, span[0] - 1, span[1] - 1)
    places = permutations(enumerate(said), 2)
    counts = {method: sum(map(len, steps[span[0] - 1 : span[1]])) for method, steps in said.items()}
    return {(one, other): (float(differing[i, j]), counts[one]) for (i, one), (j, other) in places}


def _scored(group: Group, spans: Sequence[Span], metric: str) -> dict[int, dict[Span, Matrix]]:
    """The mean of a metric over the steps of a span at which it is known, of one method less that of another."""
    scores = group.scores
    scores = scores[(scores["stat"] == "each") & scores["tau"].isna() & scores["value"].notna()]
    if metric not in set(scores["metric"]):
        raise unknown("metric over time", metric, sorted(set(scores["metric"])))
    scores = scores[scores["metric"] == metric]
    scores = scores.assign(step=scores["time"].map({name: k for k, name in enumerate(times(group), 1)}))
    found: dict[int, dict[Span, Matrix]] = {}
    for span in spans:
        within = scores[scores["step"].between(*span)]
        for seed in scores["seed"].unique():
            known = within[within["seed"] == seed].groupby("method")["value"].agg(["mean", "size"])
            means, counts = known["mean"].to_dict(), known["size"].to_dict()
            pairs = {
                (one, other): (means[one] - means[other], int(min(counts[one], counts[other])))
                for one, other in permutations(means, 2)
            }
            found.setdefault(int(seed), {})[span] = pairs
    return found
