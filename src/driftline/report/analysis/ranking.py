"""Methods ranked over groups of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import competes
from driftline.report.analysis.result_table import Column, by_seed

Scores = Mapping[str, Mapping[int, float]]
"""Of one setting: by method, by seed."""


@dataclass(frozen=True)
class Ranking:
    """Methods over settings: a table of means with a row per setting, and what was left out of it."""

    methods: list[str]
    seeds: dict[str, list[int]]
    """Of each setting that counts, those that all methods have."""
    means: np.ndarray
    missing: list[str]
    """Methods that are not in every setting."""
    idle: list[str]
    """Settings without a common seed."""


def rank(scores: Mapping[str, Scores]) -> Ranking | None:
    """The methods that all settings have, in those where they share a seed; None if there are not two of each."""
    several = {title: one for title, one in scores.items() if len(one) > 1}  # one method alone has no rank
    every = sorted({method for one in several.values() for method in one})
    methods = [method for method in every if all(method in one for one in several.values())]
    common = {title: _common(one, methods) for title, one in several.items()} if len(methods) > 1 else {}
    seeds = {title: found for title, found in common.items() if found}
    if len(seeds) < 2:
        return None
    means = [[np.mean([several[title][m][seed] for seed in found]) for m in methods] for title, found in seeds.items()]
    missing = [method for method in every if method not in methods]
    return Ranking(methods, seeds, np.array(means), missing, [title for title in common if title not in seeds])


def known_scores(group: Group, column: Column) -> Scores:
    """Return the finite scores of ranked methods, by method and seed."""
    found = by_seed(group.scores, column)
    kept = {m: {s: v for s, v in values.items() if math.isfinite(v)} for m, values in found.items() if competes(m)}
    return {method: values for method, values in kept.items() if values}


def _common(scores: Scores, methods: Sequence[str]) -> list[int]:
    return sorted(set.intersection(*(set(scores[method]) for method in methods)))
