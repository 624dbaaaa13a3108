"""Leaderboards: methods over all settings of a matrix, and which of them to deploy if the setting is not known.

Every method has a score in every setting. One that cannot run somewhere, because it needs labels where there are none,
say, leaves the model there as it is: it gets the score of the baseline that uses no labels or, where nothing was
trained in advance, that of a constant answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftline.errors import UserError
from driftline.metrics.robust_choice import (
    SignedRank,
    bayesian_signed_rank,
    mean_ranks,
    regrets,
    resampled_seeds,
    wilcoxon_p,
)
from driftline.metrics.significance import holm
from driftline.report.analysis.matrix import MatrixColumn, MatrixView
from driftline.report.analysis.result_table import mean_gmac, scores_by_seed, training_gmac
from driftline.report.analysis.trivial_baseline import trivial_scores
from driftline.seeds import Seed

DRAWS = 2000
INPUTS_ONLY = "inputs"
ROPE = 0.01
"""Two methods within one point are equal."""
SLACK = 1.1
"""The most compute of ranks at equal compute, over the median of the methods that train."""


@dataclass(frozen=True)
class Spread:
    """A number with its 95% interval over draws of seeds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Scores of methods by setting and seed, and what follows from them."""

    settings: tuple[str, ...]
    methods: tuple[str, ...]
    scores: np.ndarray
    """Settings x methods x seeds."""
    stands_in: np.ndarray
    """Settings x methods: whether a score is that of the model as it is."""
    compute: np.ndarray
    """Settings x methods: 10^9 multiply-accumulates of a run; 0 where a method does nothing, NaN if not counted."""
    typical_compute: np.ndarray
    """The median of the methods that train, by setting; NaN without any."""
    left_out: Mapping[str, str]
    """Methods without a score somewhere, and why."""

    @cached_property
    def means(self) -> np.ndarray:
        """Mean scores over seeds, by setting and method."""
        return np.asarray(self.scores.mean(axis=2))

    @cached_property
    def draws(self) -> np.ndarray:
        """Mean scores of each draw of seeds: draws x settings x methods."""
        return resampled_seeds(self.scores, DRAWS, Seed(0).child("leaderboard").numpy())

    @cached_property
    def ranks(self) -> list[Spread]:
        """The mean rank of each method."""
        return _spreads(mean_ranks(self.means), np.stack([mean_ranks(table) for table in self.draws]))

    @cached_property
    def max_regrets(self) -> list[Spread]:
        """The largest regret of each method over settings."""
        return _spreads(regrets(self.means).max(axis=0), np.stack([regrets(table).max(axis=0) for table in self.draws]))

    @cached_property
    def worst_settings(self) -> list[str]:
        """The setting in which each method has its largest regret."""
        return [self.settings[k] for k in regrets(self.means).argmax(axis=0)]

    @cached_property
    def order(self) -> list[int]:
        """The methods by largest regret, then by mean rank."""
        return sorted(range(len(self.methods)), key=lambda k: (self.max_regrets[k].value, self.ranks[k].value))

    @property
    def choice(self) -> str:
        """The method with the smallest largest regret."""
        return self.methods[self.order[0]]

    @cached_property
    def share_of_draws(self) -> float:
        """The share of draws of seeds in which the choice is the same."""
        chosen = np.stack([regrets(table).max(axis=0) for table in self.draws]).argmin(axis=1)
        return float(np.mean(chosen == self.order[0]))

    @cached_property
    def choices_without(self) -> dict[str, str]:
        """The choice if a setting is left out, for each setting."""
        found = {}
        for k, setting in enumerate(self.settings):
            rest = np.delete(self.means, k, axis=0)
            found[setting] = self.methods[int(regrets(rest).max(axis=0).argmin())]
        return found

    @cached_property
    def separated(self) -> np.ndarray:
        """Whether each method is separated from that of the best mean rank: Wilcoxon over settings, Holm-corrected."""
        best = int(np.argmin([rank.value for rank in self.ranks]))
        p = [
            np.nan if k == best else wilcoxon_p(self.means[:, best] - self.means[:, k])
            for k in range(len(self.methods))
        ]
        return np.asarray(holm(p) < 0.05)

    @property
    def inseparable(self) -> str:
        """A sentence if the test separates no method whatever the scores are, because of its many comparisons."""
        others, n = len(self.methods) - 1, len(self.settings)
        smallest = min(1.0, others * 2.0 ** (1 - n))
        if smallest < 0.05:
            return ""
        return f" None can be: {others} comparisons over {n} settings have a corrected p of at least {smallest:.3f}."

    def against(self, other: int) -> SignedRank:
        """Return the probability that the choice is better than another method, over settings."""
        rng = Seed(0).child("signed-rank", self.methods[other]).numpy()
        return bayesian_signed_rank(self.means[:, self.order[0]], self.means[:, other], ROPE, rng, draws=5000)

    @cached_property
    def ranks_at_equal_compute(self) -> dict[int, float]:
        """Mean ranks among the methods that spend no more than usual in any setting."""
        limit = np.where(np.isnan(self.typical_compute), np.inf, SLACK * self.typical_compute)
        kept = np.flatnonzero((self.compute <= limit[:, np.newaxis]).all(axis=0))
        if len(kept) < 2:
            return {}
        return dict(zip(kept.tolist(), mean_ranks(self.means[:, kept]).tolist(), strict=True))


def leaderboard(view: MatrixView) -> Leaderboard:
    """Return the leaderboard of a matrix."""
    columns = [column for column in view.columns if column.metric and column.metric.share and column.group]
    found = {column.benchmark: _setting(view, column) for column in columns}
    left_out = {method: why for scores in found.values() for method, why in scores.left_out.items()}
    methods = tuple(method for method in view.methods if method not in left_out)
    if len(columns) < 2 or len(methods) < 2:
        raise UserError(
            "a leaderboard needs two methods with a score in two settings or more, each a share such as accuracy"
        )
    seeds = sorted(set.intersection(*(set(one.seeds(methods)) for one in found.values())))
    if not seeds:
        raise UserError("a leaderboard needs a seed that all methods have in all settings")
    scores = np.array([[[one.scores[m][seed] for seed in seeds] for m in methods] for one in found.values()])
    stands_in = np.array([[m in one.stands_in for m in methods] for one in found.values()])
    compute = np.array([[one.compute[m] for m in methods] for one in found.values()])
    typical = np.array([_typical_compute(column) for column in columns])
    return Leaderboard(tuple(found), methods, scores, stands_in, compute, typical, left_out)


def _typical_compute(column: MatrixColumn) -> float:
    """Return the median compute of the methods of a column that train; of two in the middle, the lower one."""
    assert column.group is not None
    found = list(training_gmac(column.group).values())
    return float(np.quantile(found, 0.5, method="lower")) if found else np.nan


@dataclass(frozen=True)
class _Setting:
    """The scores of a column by method and seed."""

    scores: dict[str, dict[int, float]]
    compute: dict[str, float]
    stands_in: frozenset[str]
    left_out: dict[str, str]

    def seeds(self, methods: tuple[str, ...]) -> list[int]:
        return sorted(set.intersection(*(set(self.scores[method]) for method in methods)))


def _setting(view: MatrixView, column: MatrixColumn) -> _Setting:
    assert column.group is not None
    assert column.metric is not None
    better = 1 if column.metric.better == "higher" else -1
    known = scores_by_seed(column.group.summary, column.metric)
    unchanged = column.group.baseline
    if unchanged is None or view.cells[unchanged, column.benchmark].uses != INPUTS_ONLY:
        unchanged = None
    as_it_is = _constant_answer(column) if unchanged is None else known[unchanged]
    scores, compute, stands_in, left_out = {}, {}, [], {}
    for method in view.methods:
        cell = view.cells[method, column.benchmark]
        values = {seed: value for seed, value in known.get(method, {}).items() if np.isfinite(value)}
        if method in column.group.methods and method not in column.group.ranked:
            left_out[method] = "it sees more than others"
        elif values:
            scores[method] = {seed: better * value for seed, value in values.items()}
            gmac = mean_gmac(column.group, method)
            compute[method] = np.nan if gmac is None else gmac
        elif cell.cannot_run and as_it_is:
            scores[method] = {seed: better * value for seed, value in as_it_is.items()}
            compute[method] = 0.0
            stands_in.append(method)
        else:
            left_out[method] = f"no score in {column.benchmark}"
    return _Setting(scores, compute, frozenset(stands_in), left_out)


def _constant_answer(column: MatrixColumn) -> dict[int, float]:
    """Return the scores of a constant answer by seed."""
    assert column.group is not None
    assert column.metric is not None
    found = trivial_scores(column.group)
    rows = found[(found["metric"] == column.metric.metric) & (found["stat"] == column.metric.stat)]
    return dict(zip(rows["seed"].tolist(), rows["value"].tolist(), strict=True))


def _spreads(values: np.ndarray, draws: np.ndarray) -> list[Spread]:
    low, high = np.percentile(draws, [2.5, 97.5], axis=0)
    ends = zip(values.tolist(), low.tolist(), high.tolist(), strict=True)
    return [Spread(value, min(below, value), max(above, value)) for value, below, above in ends]
