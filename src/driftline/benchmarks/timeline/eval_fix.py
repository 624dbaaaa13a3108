"""Eval-Fix, the other protocol of Wild-Time: train on everything up to a split, test on what comes after.

ID is the accuracy on the pooled held-out parts of the periods trained on, so large periods weigh more; OOD is the plain
mean over later periods, and its worst the minimum over them. Departs from Wild-Time's code in that methods which
visit the periods one by one train on the split period too, as the pooled ones do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftline.benchmarks.base import Scenario
from driftline.errors import unknown_name
from driftline.metrics.confidence import Interval, bootstrap_means, mean_interval, percentile_interval
from driftline.metrics.eval_fix import in_distribution_accuracy, ood_mean, ood_worst
from driftline.streams import PeriodRange, Periods
from driftline.types import JsonObject, Probe, Samples, Step

METRICS = ("fix-id", "fix-ood", "fix-worst")


@dataclass(frozen=True)
class SplitProbes:
    """Probes after training: the held-out part of each period up to the split, and all of each later period."""

    timeline: Periods
    first: int
    end: int

    def due(self, step: Step | None) -> Iterable[Probe]:
        if step is not None:
            return
        for tau in range(self.first, len(self.timeline)):
            samples = self.timeline.held_out[tau] if tau < self.end else self.timeline.all_samples(tau)
            yield Probe(self.timeline.names[tau], samples)


def lay_out(
    timeline: Periods,
    split: str,
    upstream: Samples | None,
    first: int,
    protocol: JsonObject,
    embedded: dict[str, Samples],
) -> Scenario:
    """Return the scenario: the stream ends at the split, and all probes follow at the end."""
    end = split_end(timeline, split, first)
    protocol = {
        **protocol,
        "split": timeline.names[end - 1],
        "updates": "pooled methods train once; others in each period",
    }
    probes = SplitProbes(timeline, first, end)
    return Scenario(
        PeriodRange(timeline, first, end),
        probes,
        upstream,
        evaluated_at_end=True,
        protocol=protocol,
        embedding_samples=embedded,
    )


def split_end(timeline: Periods, split: str, first: int) -> int:
    """Return the position after the split: that of the first period that is not trained on."""
    split = timeline.names[-1] if split == "last" else split
    if split not in timeline.names[first:]:
        raise unknown_name("period", split, timeline.names[first:], " (in timeline.split)")
    return timeline.names.index(split) + 1


def score(
    probes: pd.DataFrame, names: list[str], split: str, resamples: int, random: np.random.Generator
) -> Iterator[JsonObject]:
    """Yield accuracy per period, then ID, OOD and worst. Periods with a constant target have no R^2: left out."""
    values = {name: probes.loc[probes["probe"] == name, "correct"].to_numpy(float) for name in names}
    values = {name: value for name, value in values.items() if np.isfinite(value).all()}
    end = sum(name in values for name in names[: names.index(split) + 1])
    # R^2 may be negative; a model worse than the mean has no skill.
    accuracy = np.array([max(value.mean(), 0) for value in values.values()])
    drawn = np.stack([np.maximum(bootstrap_means(value, resamples, random), 0) for value in values.values()], axis=-1)
    n = np.array([len(value) for value in values.values()])
    for k, name in enumerate(values):
        ends = mean_interval(values[name], drawn[:, k])
        cell = {"value": accuracy[k], **ends._asdict(), "n": n[k], "unit": "examples"}
        yield {"metric": "fix-id" if k < end else "fix-ood", "stat": "each", "time": name, **cell}
    if end:
        pooled = np.concatenate(list(values.values())[:end])
        ends = mean_interval(pooled, in_distribution_accuracy(drawn[:, :end], n[:end]))
        yield _summary(
            "fix-id", in_distribution_accuracy(accuracy[:end], n[:end]), ends, int(n[:end].sum()), "examples"
        )
    if end < len(values):
        for metric, compute in (("fix-ood", ood_mean), ("fix-worst", ood_worst)):
            ends = percentile_interval(compute(drawn[:, end:]))
            yield _summary(metric, compute(accuracy[end:]), ends, len(values) - end, "times")


def _summary(metric: str, value: float, ends: Interval, n: int, unit: str) -> JsonObject:
    return {"metric": metric, "stat": "mean", "value": value, **ends._asdict(), "n": n, "unit": unit}
