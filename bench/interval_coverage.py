"""How often 95 % intervals contain the truth, and how often horizons end in a world without drift.

Worlds are made up, so the true accuracies are known: models are right with these chances on examples that all models
share, 40 of 400 examples of each period are held out. The truth of a horizon is the paper's definition on the true
accuracies. "plain" is the percentile bootstrap of the paper's definition. The method was tuned on seed 0: judge it on
another. Run: `python bench/interval_coverage.py [repeats] [--seed N] [--worlds gradual] [--metrics id]`.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial as fix
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from driftline.benchmarks import base
from driftline.benchmarks.timeline.scores import rows
from driftline.metrics.confidence import PeriodAnswers, accuracy_matrix, percentile_interval, standard_errors
from driftline.metrics.horizons import drift_horizon, stability_horizon
from driftline.metrics.per_period import Horizon
from driftline.metrics.temporal import adaptation_score, in_distribution

PERIODS, EXAMPLES, HELD_OUT, HORIZON, DRAWS = 12, 400, 40, 6, 200
DELTA = {"delta": 0.9}
DRIFT = {"epsilon": 0.0, "threshold": 0.15, "horizon": HORIZON}
ALLOWANCE = {"allowance": 1.96}
METRICS = {"id": {}, "tas": {}, "sh": DELTA | ALLOWANCE, "dh": DRIFT | ALLOWANCE}
TRUTH: dict[str, Callable[..., Any]] = {
    "id": in_distribution,
    "tas": adaptation_score,
    "sh": fix(stability_horizon, **DELTA),
    "dh": fix(drift_horizon, **DRIFT),
}
WORLDS = (("no drift", 0.97), ("no drift", 0.7), ("gradual", 0.9), ("abrupt", 0.9), ("uneven", 0.85))
CALLED = {"id": "A(t,t)", "tas": "TAS", "sh": "SH", "dh": "DH"}


def chances(world: str, level: float, rng: np.random.Generator, periods: int = PERIODS) -> np.ndarray:
    """True accuracies of a world by training and test period."""
    t, tau = np.indices((periods, periods))
    change = {
        "no drift": np.zeros((periods, periods)),
        "gradual": -0.025 * (tau - t),
        "abrupt": np.where((t < periods // 2) & (tau >= periods // 2), -0.3, 0.0),
        "harder": -0.2 * tau / periods,
        "uneven": -0.015 * (tau - t) + rng.normal(0, 0.02, (periods, 1)) + rng.normal(0, 0.02, (1, periods)),
    }[world]
    return np.where(t > tau, np.nan, np.clip(level + change, 0.3, 0.995))


def answers(
    P: np.ndarray, rng: np.random.Generator, examples: int = EXAMPLES, held_out: int = HELD_OUT
) -> list[PeriodAnswers]:
    """Right and wrong answers with these chances; an example that is hard for one model is hard for the others."""
    columns = []
    for tau in range(len(P)):
        hard = rng.normal(0, np.sqrt(0.5), examples) + rng.normal(0, np.sqrt(0.5), (tau + 1, examples))
        right = (special.ndtri(P[: tau + 1, tau])[:, None] > hard).astype(float)
        columns.append(PeriodAnswers(right[:tau], np.where(np.arange(examples) < held_out, right[tau], np.nan)))
    return columns


def coverage(world: str, level: float, repeats: int, seed: int, metrics: Sequence[str] = tuple(TRUTH)) -> pd.DataFrame:
    """Shares of intervals that hold the truth, and their mean width, by metric and statistic."""
    rng = np.random.default_rng(seed)
    hits: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for _ in range(repeats):
        P = chances(world, level, rng)
        columns = answers(P, rng)
        names = [str(t) for t in range(PERIODS)]
        scores = rows(columns, names, {metric: METRICS[metric] for metric in metrics}, DRAWS, rng)
        found = base.scores_frame(scores).set_index(["metric", "stat"]).sort_index()
        A, n = accuracy_matrix(columns)
        plain = np.where(np.isnan(A), np.nan, rng.binomial(n, np.nan_to_num(A), (DRAWS, *A.shape)) / np.maximum(n, 1))
        for metric, compute in ((metric, TRUTH[metric]) for metric in metrics):
            truth, resampled = compute(P), compute(plain)
            for stat, part in (("each", "counted_values"), ("mean", "mean")):
                part_of_truth = np.atleast_1d(getattr(truth, part))
                known = np.isfinite(part_of_truth)
                now = found.loc[[(metric, stat)], ["low", "high"]].to_numpy().T
                old = np.atleast_2d(np.stack(percentile_interval(getattr(resampled, part)), axis=-1))[known].T
                for which, (low, high) in (("now", now), ("plain", old)):
                    inside = (low <= part_of_truth[known] + 1e-9) & (part_of_truth[known] <= high + 1e-9)
                    hits[metric, stat, which].append(inside.mean())
                    hits[metric, stat, f"width {which}"].append((high - low).mean())
    means = {key: np.mean(value) for key, value in hits.items()}
    return pd.Series(means).unstack().assign(world=f"{world}, {level}")


def alarms(level: float, repeats: int, seed: int) -> list[float]:
    """Shares of models whose horizon ends without drift: 84 periods, 44 of 440 held out, the next ten looked at."""
    rng = np.random.default_rng(seed + 1)
    found = []
    for _ in range(repeats):
        columns = answers(chances("no drift", level, rng, 84), rng, 440, 44)
        A = np.where(np.subtract.outer(np.arange(84), np.arange(84)) < -10, np.nan, accuracy_matrix(columns)[0])
        error = standard_errors(columns)
        drifts = fix(drift_horizon, epsilon=0.0, threshold=0.15, horizon=10)
        lasting = fix(stability_horizon, delta=0.9)
        made = [part for compute in (drifts, lasting) for part in (compute(A), compute(A, error=error, **ALLOWANCE))]
        found.append([number for one in made for number in (_ended(one), float(one.mean))])
    return np.mean(found, axis=0).tolist()


def _ended(found: Horizon) -> float:
    return float((found.counted & ~found.censored).sum() / found.counted.sum())


def main(repeats: int, seed: int, worlds: Sequence[str], metrics: Sequence[str]) -> None:
    print("| world, accuracy | metric | each model: plain → now (width) | mean over models: plain → now (width) |")
    print("|---|---|--:|--:|")
    for world, level in [one for one in WORLDS if one[0] in worlds]:
        found = coverage(world, level, repeats, seed, metrics)
        for metric in metrics:
            cells = [
                f"{row['plain']:.2f} → {row['now']:.2f} ({row['width now']:.2g})"
                for row in (found.loc[(metric, stat)] for stat in ("each", "mean"))
            ]
            print(f"| {world}, {level} | {CALLED[metric]} | {cells[0]} | {cells[1]} |", flush=True)
    if not {"sh", "dh"} & set(metrics):
        return
    print("\n| accuracy | DH, paper: alarms (mean) | DH: alarms (mean) | SH, paper: ends (mean) | SH: ends (mean) |")
    print("|--:|--:|--:|--:|--:|")
    for level in (0.95, 0.9, 0.85, 0.7, 0.5):
        numbers = alarms(level, max(1, repeats // 8), seed)
        cells = [f"{rate:.0%} ({mean:.1f})" for rate, mean in zip(numbers[::2], numbers[1::2], strict=True)]
        print(f"| {level} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("repeats", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", nargs="+", choices=[world for world, _ in WORLDS], default=[w for w, _ in WORLDS])
    parser.add_argument("--metrics", nargs="+", choices=list(TRUTH), default=list(TRUTH))
    given = parser.parse_args()
    began = time.process_time()
    main(given.repeats, given.seed, given.worlds, given.metrics)
    print(f"\n{time.process_time() - began:.0f} CPU s")
