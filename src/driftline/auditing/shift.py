"""Distribution shift: of the inputs (covariate shift), or of the target at equal inputs (conditional shift).

Every period is compared with the first. Distances per feature and a classifier of the two periods measure the inputs.
The errors of the first model, reweighted as if its own period had the later inputs, measure the rest: what reweighting
does not explain arises at equal inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

from driftline.auditing.copies import first_copies
from driftline.auditing.estimate import DRAWS, Estimate
from driftline.auditing.feature_shift import FeatureShift, compared_rows
from driftline.auditing.table import AuditTable
from driftline.data.formats.column_kinds import column_kind, to_floats
from driftline.metrics.shift import auc, benjamini_hochberg, error_change_by_feature, performance_gap
from driftline.models.tabular import EncodedEstimator

MAX_WEIGHT = 10.0  # later rows with a larger weight have no counterpart in the first period
MAX_COPIES = 4  # rows per value of all features together, up to which rows are copies and not alike by few values
MIN_EFFECTIVE_N, MIN_OVERLAP = 30, 0.5
BINS = 10


@dataclass(frozen=True, eq=False)
class DomainClassifier:
    """A cross-fitted classifier of the first period against a later one."""

    auc: Estimate
    weights: pd.Series
    """Weights by row that give the first period the inputs of the later one."""
    overlap: float
    """Share of the later rows that have a counterpart in the first period."""


@dataclass(frozen=True)
class PeriodLoss:
    """Quality that the first model loses in a later period: covariate + conditional = total."""

    total: Estimate
    covariate: Estimate
    conditional: Estimate
    n: int
    n_first: int
    effective_n: float
    """Effective number of rows of the first period after reweighting."""
    overlap: float
    auc: Estimate


@dataclass(frozen=True)
class MeanLoss:
    """The same, on average over the later periods that overlap enough with the first."""

    total: Estimate
    covariate: Estimate
    conditional: Estimate
    periods: int
    """Number of these periods."""


@dataclass(frozen=True)
class UnevenFeature:
    """How unevenly the first model's error changed over the values of a feature."""

    feature: str
    spread: float
    p: float
    worst: str
    """The values at which the error rose most."""


@dataclass(frozen=True)
class Shift:
    """How the table differs from its first period."""

    features: tuple[FeatureShift, ...]
    """The largest distance first."""
    periods: dict[str, PeriodLoss]
    overall: MeanLoss
    uneven_features: tuple[UnevenFeature, ...]

    @property
    def changed_features(self) -> list[FeatureShift]:
        return [feature for feature in self.features if feature.changed]

    @property
    def farthest(self) -> tuple[str, Estimate]:
        """The period that a classifier distinguishes best from the first; the interval of its AUC is corrected."""
        name, auc = max(((name, loss.auc) for name, loss in self.periods.items()), key=lambda found: found[1].value)
        return name, _widened(auc, norm.isf(0.025 / len(self.periods)) / norm.isf(0.025))

    @property
    def inputs_moved(self) -> bool:
        """Whether a feature, or all of them together, surely differ from the first period."""
        return bool(self.changed_features) or self.farthest[1].low > 0.5


def measure_shift(
    table: AuditTable,
    correct: Mapping[str, pd.Series],
    features: tuple[FeatureShift, ...],
    classifiers: Mapping[str, DomainClassifier],
) -> Shift:
    """Combine the shift of features and the classifiers by period with the losses of the first model.

    `correct`: by period, how right the first model is on each row, by row number.
    """
    periods = decompose_loss(table, correct, classifiers)
    return Shift(features, periods, mean_decomposition(list(periods.values())), uneven_features(table, correct))


def domain_classifier(table: AuditTable, tau: int) -> DomainClassifier:
    """Fit a classifier of the first period against period `tau` on each half of the rows, and apply it to the other.

    The two halves repeat each other (without a shift, the AUCs of both err alike), so the variance is not halved.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    first, later = compared_rows(table, 0).id, compared_rows(table, tau).id
    rows = np.concatenate([first, later])
    is_later = np.repeat([0, 1], [len(first), len(later)])
    inputs, chance = table.frame.inputs, np.empty(len(rows))
    fold, counted = _folds(table, rows, is_later, tau)
    settings = {"max_iter": 25, "max_leaf_nodes": 15, "l2_regularization": 1.0, "early_stopping": False}
    for k in (0, 1):
        model = EncodedEstimator(HistGradientBoostingClassifier(**settings, random_state=0))
        model.fit(inputs.iloc[rows[fold != k]], is_later[fold != k])
        chance[fold == k] = model.predict_proba(inputs.iloc[rows[fold == k]])[:, 1]
    weights = chance / np.maximum(1 - chance, 1e-9) * len(first) / len(later)
    found = Estimate(*auc(chance[counted & (is_later == 0)], chance[counted & (is_later == 1)]))
    return DomainClassifier(
        auc=_widened(found, math.sqrt(2)),
        weights=pd.Series(np.minimum(weights[is_later == 0], MAX_WEIGHT), index=first),
        overlap=float((weights[is_later == 1] <= MAX_WEIGHT).mean()),
    )


def _folds(table: AuditTable, rows: np.ndarray, is_later: np.ndarray, tau: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the half of each row, and whether the row counts in the AUC.

    Copies of a row stay together, since the model of one half would recognize them in the other, and count once in each
    period. Where most rows are copies, the features have few values and their shares are compared: all rows count.
    """
    fold = table.seed.child("folds", tau).numpy().permutation(len(rows)) % 2
    if table.copy_keys is not None:
        keys = table.copy_keys[rows]
        together, counted = fold[first_copies(keys)], ~pd.DataFrame({"key": keys, "later": is_later}).duplicated()
        both = all((is_later[together == half] == later).any() for half in (0, 1) for later in (0, 1))
        if both and MAX_COPIES * len(np.unique(keys)) >= len(rows):
            return together, counted.to_numpy()
    return fold, np.ones(len(rows), bool)


def _widened(auc: Estimate, factor: float) -> Estimate:
    low, high = (auc.value + factor * (end - auc.value) for end in (auc.low, auc.high))
    return Estimate(auc.value, max(low, 0.0), min(high, 1.0))


def decompose_loss(
    table: AuditTable, correct: Mapping[str, pd.Series], classifiers: Mapping[str, DomainClassifier]
) -> dict[str, PeriodLoss]:
    """Split the loss of the first model in each later period into a covariate and a conditional part."""
    own = correct[table.names[0]]
    random = table.seed.child("gap").numpy()
    losses = {}
    for name, classifier in classifiers.items():
        known = own.index.intersection(classifier.weights.index)
        gap = performance_gap(own[known], classifier.weights[known], correct[name], DRAWS, random)
        total, covariate, conditional = (Estimate(*part) for part in (gap.total, gap.covariate, gap.conditional))
        counts = (len(correct[name]), len(known), gap.effective_sample_size)
        losses[name] = PeriodLoss(total, covariate, conditional, *counts, classifier.overlap, classifier.auc)
    return losses


def mean_decomposition(losses: Sequence[PeriodLoss]) -> MeanLoss:
    """Return the mean over later periods of which at least half of the rows have a counterpart in the first.

    The interval of the mean is the mean of the intervals: the first period's rows enter every period, so errors do not
    average out.
    """
    usable = [loss for loss in losses if loss.effective_n >= MIN_EFFECTIVE_N and loss.overlap >= MIN_OVERLAP]

    def mean(parts: list[Estimate]) -> Estimate:
        ends = ([p.value for p in parts], [p.low for p in parts], [p.high for p in parts])
        value, low, high = (float(np.mean(values)) if values else math.nan for values in ends)
        return Estimate(value, low, high, sum(loss.n for loss in usable), "answers")

    return MeanLoss(
        total=mean([loss.total for loss in usable]),
        covariate=mean([loss.covariate for loss in usable]),
        conditional=mean([loss.conditional for loss in usable]),
        periods=len(usable),
    )


def uneven_features(table: AuditTable, correct: Mapping[str, pd.Series]) -> tuple[UnevenFeature, ...]:
    """Return how unevenly the first model's error changed over each feature: first period against the last third."""
    names = table.names[-max(1, len(table.names) // 3) :]
    before, after = correct[table.names[0]], pd.concat([correct[name] for name in names])
    changes = []
    for feature in table.frame.features:
        column = table.frame.inputs[feature]
        bins_before, bins_after, bin_name = _bins(column.iloc[before.index], column.iloc[after.index])
        change = error_change_by_feature(before.to_numpy(), bins_before, after.to_numpy(), bins_after)
        if np.isfinite(change.spread):
            changes.append((feature, change, bin_name(change.worst)))
    adjusted = benjamini_hochberg([change.p for _, change, _ in changes])
    rows = [
        UnevenFeature(feature, change.spread, float(p), worst)
        for (feature, change, worst), p in zip(changes, adjusted, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: -row.spread))


def first_model_scores(table: AuditTable, ids: np.ndarray, errors: np.ndarray) -> dict[str, pd.Series]:
    """Return by period how right the first model was on each row; for numbers, on the scale of the first period.

    `errors`: 0 or 1 for classes, squared errors for numbers, of the rows with these numbers.
    """
    scale = 1.0 if table.is_classification else float(np.var(table.periods[0].y)) or 1.0
    scores = pd.Series(1 - errors / scale, index=ids)
    return {
        name: scores[scores.index.intersection(pd.Index(rows.id))]
        for name, rows in zip(table.names, table.periods, strict=True)
    }


def _bins(before: pd.Series, after: pd.Series) -> tuple[np.ndarray, np.ndarray, Callable[[int], str]]:
    """Return the bin of each row, with bins from the first period's values, and a function that names a bin."""
    if column_kind(before) == "number":
        a, b = to_floats(before), to_floats(after)
        edges = np.unique(np.nanquantile(a, np.arange(1, BINS) / BINS)) if np.isfinite(a).any() else np.zeros(0)
        codes = [np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x, side="right")) for x in (a, b)]
        ends = [-np.inf, *edges, np.inf]
        return codes[0], codes[1], lambda k: "missing" if k > len(edges) else f"from {ends[k]:.4g} to {ends[k + 1]:.4g}"
    texts = [part.astype(object).fillna("").astype(str) for part in (before, after)]
    names = list(texts[0].value_counts().index[:BINS])
    positions = [pd.Index(names).get_indexer(pd.Index(part)) for part in texts]
    codes = [np.where(at < 0, len(names), at) for at in positions]
    return codes[0], codes[1], lambda k: f"'{names[k]}'" if k < len(names) else "other values"
