"""Accuracy of a model on the periods after the one it was trained on.

All start from the accuracies A[..., t, tau] of the model of period t on period tau >= t: fractions, NaN where
not evaluated, any leading axes (bootstrap draws, seeds). A[tau, tau], on held-out data, is the "oracle" of
tau: the same method trained at tau, not an upper bound, hence the clipping. The lower triangle is ignored.

Iovine, Ziffer, Della Valle, "Tracking Adaptation Time: Metrics for Temporal Distribution Shift", 2026, has no
public code. Where its text admits several readings the default is ours and each other one is a keyword away.

A period that was not evaluated concerns only the rows t that look at it. At the end of a row it shortens the
future. As a gap inside the future it makes a mean (TAS, OOD) or a minimum NaN, unless `partial=True`, which uses the
steps there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial as fix
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from driftline.metrics import metric
from driftline.metrics.confidence import PeriodAnswers
from driftline.metrics.horizons import drift_horizon, stability_horizon
from driftline.metrics.per_period import (
    PAPER,
    TOLERANCE,
    PerStep,
    accuracies,
    check_choice,
    diagonal,
    example_maker,
    masked_mean,
    rows_by_age,
    transfer_ratio,
    usable_steps,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "accuracy",
    "adaptation_score",
    "drift_horizon",
    "in_distribution",
    "out_of_distribution",
    "stability_horizon",
    "transfer_ratio",
    "worst_future",
]

WILD_TIME = "Yao et al. 2022, Wild-Time"
Clipping = Literal["ratio", "transfer", "raw-transfer", "elementwise", "none"]


@metric(
    "accuracy",
    formula="A[t,tau] = share of right answers of the model of t in period tau",
    paper=PAPER,
    example=example_maker(),
)
def accuracy(A: ArrayLike) -> np.ndarray:
    """Return the checked accuracies: fractions, square, NaN where not evaluated. Higher is better."""
    return accuracies(A)


@metric(
    "tas",
    title="relative to fresh (TAS)",
    formula="TAS(t) = min(1, mean_k A[t,t+k] / mean_k A[t+k,t+k])",
    paper=PAPER,
    example=example_maker(),
)
def adaptation_score(
    A: ArrayLike,
    horizon: int | None = None,
    clipping: Clipping = "ratio",
    partial: bool = False,
) -> PerStep:
    """Return the temporal adaptation score: accuracy on the future as a share of what its oracles achieve.

    Over the future steps k = 1..horizon (None: all there are). Higher is better, 1 is no loss. By `clipping`:

    - "ratio": min(1, mean_k A[t,t+k] / mean_k A[t+k,t+k]), the paper's Eq. 6; "none": the same, unclipped;
    - "elementwise": mean_k min(A[t,t+k], A[t+k,t+k]) / mean_k A[t+k,t+k];
    - "transfer": mean_k g(t,t+k), NaN if an oracle is zero; "raw-transfer": the same of unclipped g.

    Rows without future, or with fewer than `horizon` steps unless `partial=True`, are NaN.

    >>> A = [[0.80, 0.72, 0.45, 0.60], [0, 0.75, 0.66, 0.63], [0, 0, 0.60, 0.80], [0, 0, 0, 0.70]]
    >>> adaptation_score(A).values.round(6), round(float(adaptation_score(A).mean), 6)
    (array([0.863415, 0.992308, 1.      ,      nan]), 0.951907)
    """
    A = accuracies(A)
    check_choice("clipping", clipping, get_args(Clipping))
    accuracy, oracle = (rows_by_age(x)[..., 1:] for x in (A, np.broadcast_to(diagonal(A), A.shape)))
    use, counted = usable_steps(~np.isnan(accuracy + oracle), horizon, partial)
    if clipping in ("transfer", "raw-transfer"):
        g = transfer_ratio(A, clip=clipping == "transfer")
        return PerStep(masked_mean(rows_by_age(g)[..., 1:], use, counted))
    reached = masked_mean(np.minimum(accuracy, oracle) if clipping == "elementwise" else accuracy, use, counted)
    reachable = masked_mean(oracle, use, counted)
    score = np.divide(reached, reachable, out=np.full(reached.shape, np.nan), where=reachable > TOLERANCE)
    return PerStep(np.minimum(score, 1) if clipping == "ratio" else score)


@metric(
    "id",
    title="accuracy now (ID)",
    formula="ID(t) = A[t,t]",
    bounds=(0, 1),
    paper=WILD_TIME,
    example=example_maker(),
)
def in_distribution(A: ArrayLike) -> PerStep:
    """Return the accuracy of each model on held-out data of its own period, A[t,t]. Higher is better.

    >>> in_distribution([[0.8, 0.6], [np.nan, 0.75]]).values
    array([0.8 , 0.75])
    """
    return PerStep(diagonal(accuracies(A))[..., 0, :].copy())


@metric(
    "ood",
    title="accuracy later (OOD)",
    formula="OOD(t) = mean_k A[t,t+k]",
    bounds=(0, 1),
    paper=WILD_TIME,
    example=example_maker(),
)
def out_of_distribution(A: ArrayLike, horizon: int | None = None, partial: bool = False) -> PerStep:
    """Return the mean accuracy of each model over its future, mean_k A[t,t+k] for k = 1..horizon. Higher is better.

    >>> out_of_distribution([[0.8, 0.6, 0.5], [np.nan, 0.75, 0.7], [np.nan, np.nan, 0.9]]).values
    array([0.55, 0.7 ,  nan])
    """
    future = rows_by_age(accuracies(A))[..., 1:]
    return PerStep(masked_mean(future, *usable_steps(~np.isnan(future), horizon, partial)))


@metric(
    "ood-worst",
    formula="worst(t) = min_k A[t,t+k]",
    bounds=(0, 1),
    paper=WILD_TIME,
    example=example_maker(),
)
def worst_future(A: ArrayLike, horizon: int | None = None, partial: bool = False) -> PerStep:
    """Return the accuracy of each model in the worst period of its future, min_k A[t,t+k]. Higher is better.

    >>> worst_future([[0.8, 0.6, 0.5], [np.nan, 0.75, 0.7], [np.nan, np.nan, 0.9]]).values
    array([0.5, 0.7, nan])
    """
    future = rows_by_age(accuracies(A))[..., 1:]
    use, counted = usable_steps(~np.isnan(future), horizon, partial)
    worst = np.where(use, future, np.inf).min(axis=-1, initial=np.inf)
    return PerStep(np.where(counted, worst, np.nan))


def with_r2(probes: pd.DataFrame) -> pd.DataFrame:
    """Return probes of a regression with `correct` replaced by values that average to the R^2 of their period.

    R^2 of a period is 1 - mean(error^2) / variance, so each example counts 1 - error^2 / variance of its period.
    """
    variance = probes.drop_duplicates(["probe", "id"]).groupby("probe")["truth"].var(ddof=0).replace(0, np.nan)
    squares = (probes["prediction"] - probes["truth"]) ** 2
    return probes.assign(correct=1 - squares / probes["probe"].map(variance))


def period_answers(probes: pd.DataFrame, names: Sequence[str]) -> list[PeriodAnswers]:
    """Return the correctness by model and example for each period, from probes with one row per answer."""
    position = {name: k for k, name in enumerate(names)}
    tau_of = probes["probe"].map(position).to_numpy()
    columns = []
    for tau in range(len(names)):
        rows = probes[tau_of == tau]
        ids, example = np.unique(rows["id"].to_numpy(), return_inverse=True)
        grid = np.full((tau + 1, len(ids)), np.nan)
        grid[rows["step"].to_numpy(), example] = rows["correct"].to_numpy()
        columns.append(PeriodAnswers(later=grid[:tau], own=grid[tau]))
    return columns


UNCLIPPED = (0.0, np.inf)


def _variant(name: str, formula: str, compute: Callable[..., object], bounds: tuple[float, float] | None) -> None:
    metric(name, formula=formula, paper=PAPER, example=example_maker(), bounds=bounds)(compute)


_variant("ttr-unclipped", "g(t,tau) = A[t,tau] / A[tau,tau]", fix(transfer_ratio, clip=False), UNCLIPPED)
_VARIANTS: tuple[tuple[str, Clipping, str], ...] = (
    ("tas-unclipped", "none", "mean_k A[t,t+k] / mean_k A[t+k,t+k]"),
    ("tas-elementwise", "elementwise", "mean_k min(A[t,t+k], A[t+k,t+k]) / mean_k A[t+k,t+k]"),
    ("tas-transfer", "transfer", "mean_k min(1, A[t,t+k] / A[t+k,t+k])"),
    ("tas-raw-transfer", "raw-transfer", "mean_k (A[t,t+k] / A[t+k,t+k])"),
)
for _name, _clipping, _formula in _VARIANTS:
    _variant(
        _name,
        f"TAS(t) = {_formula}",
        fix(adaptation_score, clipping=_clipping),
        UNCLIPPED if _clipping in ("none", "raw-transfer") else None,
    )
