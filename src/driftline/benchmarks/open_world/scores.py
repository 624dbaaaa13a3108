"""From the record of an open-world run to its scores, every one with its n and a 95 % interval.

- Shares of samples (overall, rolling windows, k+1): Wilson's interval. For k+1 the score MDT is cut, or HG where a
  method has no distances: at the threshold of the protocol, else at the best one, an oracle's, taken as given.
- Means over classes (mean-class and the four sections): bootstrap over classes.
- AUROCs and best F1: bootstrap over the classes whose first samples are to be detected; the many seen samples are not
  resampled. A sample without a score is left out. With "-any" the first sample of every class is unseen.
- Multiply-accumulates are counted exactly, so both ends are the number itself.

A class is unseen until its first sample, whether or not its label was revealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from driftline.metrics import novelty, openworld
from driftline.metrics.confidence import Interval, bootstrap_means, percentile_interval, wilson
from driftline.record.card import ComputeCard
from driftline.types import JsonObject

Row = JsonObject

ACCURACIES = ("overall", "mean-class", *openworld.SECTIONS, "k+1")
COSTS = ("macs", "macs-uncached")
NOVELTY = tuple(
    f"{name}{more}"
    for more in novelty.SEEN
    for name in (
        *(f"{metric}-{score}" for metric, *_ in novelty.VARIANTS for score in novelty.SCORES),
        *("clock-auroc", "clock-f1"),
    )
)
NAMES = (*ACCURACIES, "rolling", *NOVELTY, *COSTS)
"""All metrics that `rows` may give; a run whose answers have no scores or whose compute is not counted has fewer."""


def rows(
    answers: pd.DataFrame,
    protocol: JsonObject,
    compute: ComputeCard,
    *,
    window: int,
    resamples: int,
    rng: np.random.Generator,
) -> Iterator[Row]:
    """Yield the scores of one run, from its answers in the order of the stream, its protocol and its cost.

    Accuracies and novelty metrics have the statistic "mean", costs "final"; `rolling` has a value for "each" whole
    window, named after the sample that ends it, and that of the last window as "final".
    """
    correct, labels = answers["correct"].to_numpy(float), answers["truth"].to_numpy()
    pretrain = np.asarray(protocol["pretrain_classes"])
    yield _share("overall", correct)
    yield from _by_class(correct, labels, pretrain, protocol["head"], resamples, rng)
    yield from _windows(correct, window)
    scores = {name: score for name, score in _novelty_scores(answers).items() if np.isfinite(score).any()}
    new, any_first = novelty.unseen_flags(labels, pretrain), novelty.unseen_flags(labels)
    if scores:
        yield _k_plus_one(correct, new, scores["mdt"] if "mdt" in scores else scores["hg"], protocol.get("threshold"))
    for more, flags in zip(novelty.SEEN, (new, any_first), strict=True):
        yield from _novelty_rows(scores, flags, more, resamples, rng)
    yield from _cost(compute, len(correct))


def episodes(correct: ArrayLike, metric_name: str, *, resamples: int, rng: np.random.Generator) -> Row:
    """Return the score of few-shot episodes, from correctness (episodes x queries), with a bootstrap over episodes.

    `metric_name`: for example "5-shot 5-way".
    """
    shares = np.asarray(correct, float).mean(axis=-1)
    ends = percentile_interval(bootstrap_means(shares, resamples, rng))
    return {
        **_row("episodic", openworld.few_shot_accuracy(correct), ends, len(shares), "episodes", "each"),
        "time": metric_name,
    }


def _by_class(
    correct: np.ndarray, labels: np.ndarray, pretrain: np.ndarray, head: int, resamples: int, rng: np.random.Generator
) -> Iterator[Row]:
    classes, accuracy, _ = openworld.per_class(correct, labels)
    every = {"mean-class": openworld.Section(classes, accuracy)}
    for name, section in {**every, **openworld.cross_sections(correct, labels, pretrain, head)}.items():
        yield _row(name, section.mean, _resampled(section.accuracy, resamples, rng), len(section.classes), "classes")


def _windows(correct: np.ndarray, window: int) -> Iterator[Row]:
    rolling = openworld.rolling(correct, window)
    low, high = wilson((rolling.value * rolling.n).round(), rolling.n)
    for value, end, n, *ends in zip(*rolling, low, high, strict=True):
        if n == window:  # a stream shorter than a window has no curve
            yield {**_row("rolling", value, ends, n, "examples", "each"), "time": str(end)}
    yield _row("rolling", rolling.value[-1], (low[-1], high[-1]), rolling.n[-1], "examples", "final")


def _novelty_scores(answers: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the novelty scores of the record: higher for samples of unseen classes."""
    hg = {"hg": 1 - answers["confidence"].to_numpy(float)}
    return {**hg, "mdt": answers["distance"].to_numpy(float)} if "distance" in answers else hg


def _k_plus_one(correct: np.ndarray, flags: np.ndarray, score: np.ndarray, threshold: float | None) -> Row:
    known = np.where(np.isnan(score), -np.inf, score)
    at = openworld.best_accuracy_with_unseen(correct, flags, known).threshold if threshold is None else threshold
    return _share("k+1", np.where(known >= at, flags, correct))


def _novelty_rows(
    scores: dict[str, np.ndarray], flags: np.ndarray, more: str, resamples: int, rng: np.random.Generator
) -> Iterator[Row]:
    for name, score in scores.items():
        known = ~np.isnan(score)
        yield from _auroc_row(f"-{name}{more}", score[known], flags[known], resamples, rng)
    when = novelty.time_score(len(flags))
    shares = novelty.roc_placements(when, flags)
    yield _row(f"clock-auroc{more}", _mean(shares), _resampled(shares, resamples, rng), len(shares), "classes")
    yield _f1(f"clock-f1{more}", when, flags, resamples, rng)


def _auroc_row(
    ending: str, score: np.ndarray, flags: np.ndarray, resamples: int, rng: np.random.Generator
) -> Iterator[Row]:
    for name, shares in (
        ("unseen-auroc", novelty.roc_placements(score, flags)),
        ("matched-auroc", novelty.time_matched_placements(score, flags)),
    ):
        yield _row(f"{name}{ending}", _mean(shares), _resampled(shares, resamples, rng), len(shares), "classes")
    yield _f1(f"best-f1{ending}", score, flags, resamples, rng)


def _f1(name: str, score: np.ndarray, flags: np.ndarray, resamples: int, rng: np.random.Generator) -> Row:
    ends = percentile_interval(novelty.resample_best_f1(score, flags, resamples, rng))
    return _row(name, novelty.best_f1(score, flags).value, ends, int(flags.sum()), "classes")


def _cost(compute: ComputeCard, n: int) -> Iterator[Row]:
    if compute.forward_macs is None:
        return
    for name, cached in zip(COSTS, (0, compute.cached_macs or 0), strict=True):
        value = openworld.total_macs(compute.forward_macs, compute.backward_macs or 0, cached)
        yield _row(name, value, (value, value), n, "examples", "final")


def _share(name: str, correct: np.ndarray) -> Row:
    return _row(name, openworld.overall(correct), wilson(correct.sum(), len(correct)), len(correct), "examples")


def _resampled(values: np.ndarray, resamples: int, rng: np.random.Generator) -> Interval:
    return percentile_interval(bootstrap_means(values, resamples, rng)) if len(values) else Interval(np.nan, np.nan)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _row(metric: str, value: float, ends: Iterable[float], n: int, unit: str, stat: str = "mean") -> Row:
    low, high = (float(end) for end in ends)
    return {"metric": metric, "stat": stat, "value": float(value), "low": low, "high": high, "n": int(n), "unit": unit}
