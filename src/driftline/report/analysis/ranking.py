"""Mean ranks of methods over groups of runs: datasets, models, sequences.

In each group methods are ranked by their means over the seeds that all of them have. Methods that were not run in every
group are not ranked, nor is the oracle, which sees more labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftline.metrics.significance import average_ranks
from driftline.report.analysis.groups import Group
from driftline.report.analysis.result_table import Column, scores_by_seed

Scores = Mapping[str, Mapping[int, float]]
"""Scores of one group: by method, by seed."""


@dataclass(frozen=True)
class Ranking:
    """Methods over groups: mean scores with a row per group, and what was left out."""

    methods: list[str]
    seeds: dict[str, list[int]]
    """Common seeds of each ranked group."""
    means: np.ndarray
    missing: list[str]
    """Methods that are not in every group."""
    without_seed: list[str]
    """Groups without a common seed."""

    def ranks(self, better: Sequence[str]) -> np.ndarray:
        """Return the ranks in each group; `better` is the direction of each."""
        return np.stack([average_ranks(row, way) for row, way in zip(self.means, better, strict=True)])


def rank(scores: Mapping[str, Scores]) -> Ranking | None:
    """Rank the methods that all groups have; None if there are not two methods and two groups with common seeds."""
    several = {title: group for title, group in scores.items() if len(group) > 1}  # one method alone has no rank
    every = sorted({method for group in several.values() for method in group})
    methods = [method for method in every if all(method in group for group in several.values())]
    common = {title: _common_seeds(group, methods) for title, group in several.items()} if len(methods) > 1 else {}
    seeds = {title: found for title, found in common.items() if found}
    if len(seeds) < 2:
        return None
    means = [[np.mean([several[title][m][seed] for seed in found]) for m in methods] for title, found in seeds.items()]
    missing = [method for method in every if method not in methods]
    return Ranking(methods, seeds, np.array(means), missing, [title for title in common if title not in seeds])


def ranked_scores(group: Group, column: Column) -> Scores:
    """Return the finite scores of ranked methods, by method and seed."""
    scores = scores_by_seed(group.summary, column)
    ranked = {method: values for method, values in scores.items() if method in group.ranked}
    finite = {method: {s: v for s, v in values.items() if math.isfinite(v)} for method, values in ranked.items()}
    return {method: values for method, values in finite.items() if values}


def _common_seeds(scores: Scores, methods: Sequence[str]) -> list[int]:
    return sorted(set.intersection(*(set(scores[method]) for method in methods)))
