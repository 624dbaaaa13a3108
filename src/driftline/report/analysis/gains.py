"""Gains of methods over a baseline, such as the frozen model, on the same streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from driftline.errors import UserError
from driftline.report.analysis.estimates import Estimate, difference_bounds, estimate_from_seeds, estimates
from driftline.report.analysis.groups import Group


def gains(group: Group, baseline: str | None = None, metric: str = "oec", stat: str = "final") -> dict[str, Estimate]:
    """Return the gain of every other method over `baseline`, on common seeds.

    `baseline` is the display name of a method, without its settings if that is unambiguous; None: the group's own.
    """
    baseline = baseline or group.baseline
    scores = estimates(group, metric, stat)
    matches = (
        [baseline] if baseline in scores else [method for method in scores if method.partition("(")[0] == baseline]
    )
    if len(matches) > 1:
        raise UserError(f"'{baseline}' is ambiguous: it may be {', '.join(matches)}; name one with its settings")
    if not matches:
        return {}
    base = scores[matches[0]]
    differences = {m: _differences(score.by_seed, base.by_seed) for m, score in scores.items() if m not in matches}
    within = difference_bounds(metric)
    return {
        method: replace(estimate_from_seeds(by_seed, within), n=min(scores[method].n, base.n), unit=base.unit)
        for method, by_seed in differences.items()
        if by_seed
    }


def _differences(a: Mapping[int, float], b: Mapping[int, float]) -> dict[int, float]:
    return {seed: a[seed] - b[seed] for seed in a if seed in b}
