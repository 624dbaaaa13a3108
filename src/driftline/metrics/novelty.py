"""Novelty detection: AUROC and F1 for first samples of unseen classes, with a time-only baseline.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED). A sample is unseen (positive) if
it is the first of its class, and the class was not among those known at the start. A novelty score is higher the newer
a sample looks: HG is 1 - the largest softmax output, MDT the smallest distance to a class, or minus the largest
similarity. The paper's "unseen if the distance is below t" has the sign reversed.

First samples of classes are frequent at the start of a stream, so the score -t, which ignores the sample, has an AUROC
of .98 on NED's own sequences: more than any method in the paper. A score that drifts while a model trains is rewarded
or penalized for that alone. So there are two more metrics: AUROC and F1 of -t ("clock"), and an AUROC matched in time,
in which each positive is compared with as many earlier as later neighbors; there -t has exactly .5.

The best F1 selects its threshold on the stream that it is scored on, as an oracle would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError
from driftline.metrics import metric
from driftline.metrics.per_period import check_positive
from driftline.types import JsonObject

NED = "Wallingford et al. 2020, NED"
N_NEIGHBORS = 10


class BestThreshold(NamedTuple):
    """The best that a threshold can do, chosen with hindsight: a sample counts as unseen if its score reaches it."""

    value: float
    threshold: float
    flagged: int
    """How many samples are called unseen."""


class TimeBaseline(NamedTuple):
    """The result of the score -t, which depends on time alone."""

    auroc: float
    f1: BestThreshold


@dataclass(frozen=True, eq=False)
class ROC:
    """Shares of seen and of unseen samples that are called unseen, from the highest threshold to the lowest."""

    threshold: np.ndarray
    false: np.ndarray
    true: np.ndarray


@dataclass(frozen=True, eq=False)
class ThresholdCurves:
    """By threshold: how many seen samples are accepted and how many unseen ones rejected, as shares (Fig. 5)."""

    threshold: np.ndarray
    seen: np.ndarray
    unseen: np.ndarray


def unseen_flags(labels: ArrayLike, seen: ArrayLike = ()) -> np.ndarray:
    """Return which samples are the first of a class that is not in `seen`.

    >>> unseen_flags(["A", "B", "A", "B", "C"], seen=["A"]).tolist()
    [False, True, False, False, True]
    """
    labels = np.asarray(labels)
    first = np.zeros(len(labels), bool)
    first[np.unique(labels, return_index=True)[1]] = True
    known = np.asarray(seen)
    return first & ~np.isin(labels, known) if known.size else first


def time_score(samples: int) -> np.ndarray:
    """Return the score -t."""
    return -np.arange(samples, dtype=float)


def time_baseline(unseen: ArrayLike) -> TimeBaseline:
    """Return AUROC and best F1 of the score -t, the baseline of every method.

    >>> round(time_baseline([0, 1, 0, 0, 1, 0, 0, 0]).auroc, 6)
    0.666667
    """
    when = time_score(len(np.asarray(unseen)))
    return TimeBaseline(unseen_auroc(when, unseen), best_f1(when, unseen))


def unseen_auroc(score: ArrayLike, unseen: ArrayLike) -> float:
    """Return P(score of unseen > score of seen), ties half; NaN without both. Higher is better.

    >>> round(unseen_auroc([0.1, 0.7, 0.2, 0.6, 0.4, 0.5, 0.1, 0.3], [0, 1, 0, 0, 1, 0, 0, 0]), 6)
    0.833333
    """
    return _mean(roc_placements(score, unseen))


def roc_placements(score: ArrayLike, unseen: ArrayLike) -> np.ndarray:
    """Return for each unseen sample the share of seen ones that it outranks; their mean is the AUROC."""
    values, flags = _pair(score, unseen)
    others = np.sort(values[~flags])
    if not len(others):
        return np.zeros(0)
    below, upto = (np.searchsorted(others, values[flags], side) for side in ("left", "right"))
    return np.asarray((below + upto) / (2 * len(others)))


def time_matched_auroc(score: ArrayLike, unseen: ArrayLike, n_neighbors: int = N_NEIGHBORS) -> float:
    """Return the mean over unseen samples of the share of their neighbors in time that they outrank.

    Each is compared with the same number of nearest earlier and later seen samples: `n_neighbors` of each, or fewer if
    a side has fewer. Samples without neighbors on a side are left out; -t has .5. Higher is better.

    >>> flags = [0, 0, 1, 0, 0]
    >>> time_matched_auroc(time_score(5), flags), time_matched_auroc([0, 9, 1, 0, 0], flags, n_neighbors=1)
    (0.5, 0.5)
    """
    return _mean(time_matched_placements(score, unseen, n_neighbors))


def time_matched_placements(score: ArrayLike, unseen: ArrayLike, n_neighbors: int = N_NEIGHBORS) -> np.ndarray:
    """Return for each unseen sample with neighbors on both sides the share of them that it outranks, ties half."""
    check_positive("n_neighbors", n_neighbors)
    values, flags = _pair(score, unseen)
    own, others = values[flags], values[~flags]
    earlier = np.searchsorted(np.flatnonzero(~flags), np.flatnonzero(flags))
    reach = np.minimum(n_neighbors, np.minimum(earlier, len(others) - earlier))
    won = np.zeros(len(own))
    for k in range(n_neighbors):  # the k-th nearest on either side, of all positives at once
        near = np.flatnonzero(reach > k)
        for place in (earlier[near] - 1 - k, earlier[near] + k):
            won[near] += (own[near] > others[place]) + 0.5 * (own[near] == others[place])
    return np.asarray(won[reach > 0] / (2 * reach[reach > 0]))


def best_f1(score: ArrayLike, unseen: ArrayLike) -> BestThreshold:
    """Return the highest F1 over thresholds, and its highest threshold; NaN without positives. Higher is better.

    >>> best_f1([0.1, 0.7, 0.2, 0.6, 0.4, 0.5, 0.1, 0.3], [0, 1, 0, 0, 1, 0, 0, 0])
    BestThreshold(value=0.6666666666666666, threshold=0.7, flagged=1)
    """
    thresholds, last, wrong = _at_positives(score, unseen)
    if not len(thresholds):
        return BestThreshold(float("nan"), float("nan"), 0)
    found = last + 1
    f1 = 2 * found / (found + wrong + len(thresholds))
    best = int(f1.argmax())
    return BestThreshold(float(f1[best]), float(thresholds[best]), int(found[best] + wrong[best]))


def resample_best_f1(score: ArrayLike, unseen: ArrayLike, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Return the best F1 (draws,) with resampled unseen classes."""
    thresholds, last, wrong = _at_positives(score, unseen)
    if not len(thresholds):
        return np.full(resamples, np.nan)
    weights = rng.multinomial(len(thresholds), np.full(len(thresholds), 1 / len(thresholds)), size=resamples)
    found = weights.cumsum(axis=1)[:, last]
    return np.asarray((2 * found / (found + wrong + len(thresholds))).max(axis=1))


def roc(score: ArrayLike, unseen: ArrayLike) -> ROC:
    """Return the ROC curve: the origin, then a point for every distinct score; its area is the AUROC."""
    values, flags = _pair(score, unseen)
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else np.zeros(0, int)
    found = np.cumsum(flags[order])[ends]
    wrong = ends + 1 - found
    shares = [np.append(0, part) / max(1, total) for part, total in ((wrong, (~flags).sum()), (found, flags.sum()))]
    return ROC(np.append(np.inf, ranked[ends]), *shares)


def threshold_curves(score: ArrayLike, unseen: ArrayLike, thresholds: ArrayLike | None = None) -> ThresholdCurves:
    """Return the effect of thresholds on seen and unseen samples; by default 101 over the range of scores."""
    values, flags = _pair(score, unseen)
    if thresholds is None:
        known = values[np.isfinite(values)]
        thresholds = np.linspace(known.min(), known.max(), 101) if len(known) else []
    at = np.asarray(thresholds, float)
    accepted = np.searchsorted(np.sort(values[~flags]), at) / max(1, int((~flags).sum()))
    rejected = 1 - np.searchsorted(np.sort(values[flags]), at) / max(1, int(flags.sum()))
    return ThresholdCurves(at, accepted, rejected)


def _at_positives(score: ArrayLike, unseen: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores of positives in descending order, the last index of equal ones, and the false alarms.

    No other threshold has a better F1: lowering one to below a negative only adds a false alarm.
    """
    values, flags = _pair(score, unseen)
    falling = -np.sort(-values[flags])
    others = np.sort(values[~flags])
    last = np.searchsorted(-falling, -falling, side="right") - 1
    return falling, last, len(others) - np.searchsorted(others, falling)


def _pair(score: ArrayLike, unseen: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    values, flags = np.asarray(score, float), np.asarray(unseen, bool)
    if values.ndim != 1 or values.shape != flags.shape:
        raise UserError(f"give one score and one flag for each sample, not {values.shape} and {flags.shape}")
    if np.isnan(values).any():
        raise UserError("novelty scores must not be NaN: leave out samples without a score")
    return values, flags


def _mean(shares: np.ndarray) -> float:
    return float(shares.mean()) if len(shares) else float("nan")


def _example(rng: np.random.Generator) -> JsonObject:
    return {"score": rng.random(30).round(1), "unseen": np.arange(30) % 4 == 1}


SCORES = {"hg": "1 - max softmax", "mdt": "min distance to a class, or -max similarity"}
"""The two novelty scores, by the suffix of the metrics' names."""

SEEN = {"": "first sample of a class that was not pretrained", "-any": "first sample of any class"}
"""What counts as unseen, by the suffix of the metrics' names."""

VARIANTS: tuple[tuple[str, str, Callable[..., object]], ...] = (
    ("unseen-auroc", "AUROC = P(s(unseen) > s(seen)), ties half", unseen_auroc),
    ("matched-auroc", "AUROC among the nearest 10 earlier and 10 later seen samples", time_matched_auroc),
    ("best-f1", "max over thresholds of 2 TP / (2 TP + FP + FN), an oracle's choice", best_f1),
)


TITLES = {
    "unseen-auroc-mdt": "novelty (AUROC)",
    "matched-auroc-mdt": "novelty, time-matched (AUROC)",
    "clock-auroc": "novelty by time alone (AUROC)",
}


def _register(name: str, formula: str, compute: Callable[..., object], example: Callable[..., JsonObject]) -> None:
    title = TITLES.get(name, "")
    metric(name, title=title, formula=formula, paper=NED, example=example)(compute)


def _flags(rng: np.random.Generator) -> JsonObject:
    return {"unseen": rng.random(30) < 0.3}


for _suffix, _unseen in SEEN.items():
    for _name, _formula, _compute in VARIANTS:
        for _score, _definition in SCORES.items():
            _text = f"{_formula}; s = {_definition}; unseen = {_unseen}"
            _register(f"{_name}-{_score}{_suffix}", _text, _compute, _example)
    _text = f"of the score -t; unseen = {_unseen}"
    _register(f"clock-auroc{_suffix}", f"AUROC {_text}", lambda unseen: time_baseline(unseen).auroc, _flags)
    _register(f"clock-f1{_suffix}", f"best F1 {_text}", lambda unseen: time_baseline(unseen).f1, _flags)
