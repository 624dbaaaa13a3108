"""Metrics of refinement: errors fixed, and knowledge retained (EFR, UKR, OKR, CSR, KG and OEC).

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022. Model f_0 is the upstream
model and f_t the model after step t = 1..T; E_t are the queries of Q_t that f_{t-1} got wrong.

Curves have one value per step and NaN where there is nothing to measure: EFR where E_t is empty, OKR at t = 1, all but
EFR and CSR where the model was not evaluated. A mean skips NaN; a final value is the one at T and nothing else. OEC's
mean is the mean of four means, which may run over different steps, not the mean of its curve.

Paper and code differ. With indexing "after" (paper, the default) step t is scored by f_t; with "before" (code) by
f_{t-1}, so that the last refinement never counts and the upstream model enters the means. CSR counts this step's
queries too (code, the default) or, "strict", only those before it (paper). The paper calls UKR the accuracy on the
upstream training data; like its code we expect held-out upstream data. The code waits for 512 past queries before
it measures OKR; here a caller uses as many as there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError, unknown_name
from driftline.metrics import metric
from driftline.metrics.per_period import PerStep, check_positive
from driftline.metrics.refinement_counts import (
    Rows,
    bootstrap_weights,
    check_episodes,
    check_length,
    count_correct,
    error_scores,
    fixed_set_counts,
    fraction_correct,
    past_query_counts,
)
from driftline.types import JsonObject, Score

CMR = "Lin et al. 2022, Continual Model Refinement"
INDEXING = ("after", "before")
CSR_VARIANTS = ("inclusive", "strict")


@dataclass(frozen=True, eq=False)
class Curve(PerStep):
    """One number per step t = 1..T (last axis), NaN where undefined.

    >>> curve = Curve(np.array([np.nan, 1.0, 0.75]))
    >>> float(curve.mean), float(curve.final)
    (0.875, 0.75)
    """

    @property
    def final(self) -> Score:
        """The value at T, NaN if it is undefined there."""
        return self.values[..., -1][()]


@dataclass(frozen=True, eq=False)
class OverallCurve(Curve):
    """A curve whose mean is made of the means of other curves."""

    mean_of_means: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.mean_of_means


@dataclass(frozen=True, eq=False)
class Scores:
    """All six curves of a run, each with a `mean` and a `final` value; leading axes are draws."""

    efr: Curve
    ukr: Curve
    okr: Curve
    csr: Curve
    kg: Curve
    oec: OverallCurve

    def __iter__(self) -> Iterator[tuple[str, Curve]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))


def scores(
    answered: Rows,
    fixed: Rows,
    upstream: Rows,
    past: Rows,
    held_out: Rows,
    *,
    past_of: Rows | None = None,
    indexing: str = "after",
    csr: str = "inclusive",
    resamples: int | None = None,
    rng: np.random.Generator | None = None,
) -> Scores:
    """Return all scores of a run from the correctness of its answers.

    `answered[t]`, t = 0..T-1: answers to an episode, before anything was learned from it; below 1 is an error.
    `fixed[t]`: how the model that has learned from it does on its errors, in their order.
    `upstream[k]`, `held_out[k]`, `past[k]`, k = 0..T: model f_k on upstream data, on H, and on past queries. These are
    the queries before step k with indexing "after", and those up to step k with "before".

    With `resamples`, curves get a leading axis of bootstrap draws from `rng`: examples are resampled within upstream
    data, H and each episode, and whatever happens to an example happens to all its answers. For that, `past_of[k]`
    says which queries `past[k]` is about, counted through the stream from 0; otherwise they are drawn separately.

    >>> one = scores([[1, 0], [1, 1]], [[1], []], [[1], [1], [0]], [None, None, [1, 1]], [[0], [0], [1]])
    >>> one.efr.values.tolist(), float(one.okr.final), float(one.csr.final), float(one.oec.final)
    ([1.0, nan], 1.0, 0.75, 0.6875)
    """
    asked = check_episodes(answered)
    check_length(len(asked), fixed=fixed)
    check_length(len(asked) + 1, upstream=upstream, past=past, held_out=held_out)
    weigh = bootstrap_weights(resamples, rng)
    sizes = [len(row) for row in asked]
    places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    drawn = weigh(*sizes)
    efr = error_fixing_rate(*count_correct(*error_scores(asked, fixed, places), drawn))
    csr_ = cumulative_success(*count_correct([row >= 1 for row in asked], places, drawn), counting=csr)
    ukr = retention(*fixed_set_counts("upstream", upstream, weigh), indexing)
    kg = retention(*fixed_set_counts("held_out", held_out, weigh), indexing)
    okr = retention(*past_query_counts(past, past_of, drawn, weigh), indexing)
    return Scores(efr, ukr, okr, csr_, kg, overall_criterion(ukr, okr, csr_, kg))


def evaluation_steps(steps: int, period: int = 1, indexing: str = "after") -> list[int]:
    """Return which models k of 0..steps are evaluated every `period` steps.

    "after": f_period, f_2period, ... and the last. "before": as the code has it, the models that enter step 1, 1 +
    period, ... and the last step.

    >>> evaluation_steps(25, 10), evaluation_steps(25, 10, "before")
    ([10, 20, 25], [0, 10, 20, 24])
    """
    check_positive("the evaluation period", period)
    first, last = (period, steps) if _check_indexing(indexing) == "after" else (0, steps - 1)
    return sorted({*range(first, last + 1, period), last})


def _example(rng: np.random.Generator) -> JsonObject:
    asked = np.append(0, rng.integers(1, 20, 4))
    return {"right": rng.integers(0, asked + 1).astype(float), "asked": asked.astype(float)}


@metric(
    "efr",
    title="errors fixed (EFR)",
    formula="EFR(t) = Acc(f_{t+delay}, E_t), E_t the errors of f_{t-1} in Q_t; NaN if there are none",
    bounds=(0, 1),
    paper=CMR,
    example=_example,
)
def error_fixing_rate(right: ArrayLike, asked: ArrayLike) -> Curve:
    """Return the error-fixing rate from counts per step: the share of the latest errors that is now right.

    >>> float(error_fixing_rate([1, 1, 2], [1, 2, 3]).mean.round(6))
    0.722222
    """
    return Curve(fraction_correct(right, asked))


def retention(right: ArrayLike, asked: ArrayLike, indexing: str = "after") -> Curve:
    """Return UKR, OKR or KG from counts per model 0..T (last axis); `asked` is 0 where a model was not evaluated.

    >>> retention([4, 3, 3, 2], [4, 4, 4, 4]).values.tolist()
    [0.75, 0.75, 0.5]
    >>> retention([4, 3, 3, 2], [4, 4, 4, 4], indexing="before").values.tolist()
    [1.0, 0.75, 0.75]
    """
    accuracy = fraction_correct(right, asked)
    return Curve(accuracy[..., 1:] if _check_indexing(indexing) == "after" else accuracy[..., :-1])


def cumulative_success(right: ArrayLike, asked: ArrayLike, counting: str = "inclusive") -> Curve:
    """Return the cumulative success rate from counts per step: the share of all queries answered right at once.

    >>> cumulative_success([3, 2, 1], [4, 4, 4]).values.tolist()
    [0.75, 0.625, 0.5]
    >>> cumulative_success([3, 2, 1], [4, 4, 4], counting="strict").values.tolist()
    [nan, 0.75, 0.625]
    """
    if counting not in CSR_VARIANTS:
        raise unknown_name("way to count for CSR", counting, CSR_VARIANTS)
    right, asked = (np.cumsum(np.asarray(x, float), axis=-1) for x in (right, asked))
    rate = fraction_correct(right, asked)
    if counting == "strict":
        rate = np.concatenate([np.full_like(rate[..., :1], np.nan), rate[..., :-1]], axis=-1)
    return Curve(rate)


@metric(
    "oec",
    title="overall (OEC)",
    formula="OEC(t) = mean of UKR(t), OKR(t), CSR(t), KG(t); mean OEC = mean of their four means",
    bounds=(0, 1),
    paper=CMR,
    example=lambda rng: {name: rng.uniform(0, 1, 5) for name in ("ukr", "okr", "csr", "kg")},
)
def overall_criterion(ukr: ArrayLike, okr: ArrayLike, csr: ArrayLike, kg: ArrayLike) -> OverallCurve:
    """Return the overall evaluation criterion, NaN where one of the four curves is. Higher is better."""
    four = [Curve(np.asarray(curve, float)) for curve in (ukr, okr, csr, kg)]
    return OverallCurve(
        np.mean([curve.values for curve in four], axis=0), np.mean([curve.mean for curve in four], axis=0)
    )


def _register(name: str, title: str, formula: str, compute: Callable[..., Curve]) -> None:
    metric(name, title=title, formula=formula, bounds=(0, 1), paper=CMR, example=_example)(compute)


_before, _strict = partial(retention, indexing="before"), partial(cumulative_success, counting="strict")
for _name, _title, _set in (
    ("ukr", "upstream kept", "held-out upstream data"),
    ("okr", "queries kept", "a sample of Q_1 .. Q_{t-1}"),
    ("kg", "unseen queries", "H"),
):
    _short = _name.upper()
    _register(_name, f"{_title} ({_short})", f"{_short}(t) = Acc(f_t, {_set})", retention)
    _title = f"{_title}, before learning ({_short})"
    _register(f"{_name}-before", _title, f"{_short}(t) = Acc(f_{{t-1}}, {_set})", _before)
_register("csr", "right so far (CSR)", "CSR(t) = 1 - |E_1 .. E_t| / |Q_1 .. Q_t|", cumulative_success)
_title = "right so far, before learning (CSR)"
_register("csr-strict", _title, "CSR(t) = 1 - |E_1 .. E_{t-1}| / |Q_1 .. Q_{t-1}|", _strict)


def pairwise_disagreement(predictions: Mapping[str, Rows], first: int, last: int) -> np.ndarray:
    """Return the share of queries in steps first..last that two methods answer differently; NaN for itself.

    Steps count from 0 and both ends are included. Answers differ if they are not equal as they stand, whether right or
    wrong. Rows and columns are in the order of `predictions`.

    >>> answers = {"cft": [["a", "b"], ["c", "d"]], "er": [["a", "x"], ["c", "y"]]}
    >>> pairwise_disagreement(answers, 0, 1)
    array([[nan, 0.5],
           [0.5, nan]])
    """
    steps = min(map(len, predictions.values()), default=0)
    if not 0 <= first <= last < steps:
        raise UserError(f"the span {first}..{last} is not within the steps 0..{steps - 1} that all methods answered")
    joined = [np.concatenate([np.asarray(row) for row in rows[first : last + 1]]) for rows in predictions.values()]
    if len({len(answers) for answers in joined}) > 1:
        counts = ", ".join(f"{name} {len(answers):,}" for name, answers in zip(predictions, joined, strict=True))
        raise UserError(f"methods are compared on the same queries, and they have different numbers: {counts}")
    differing = np.array([[np.mean(one != other) for other in joined] for one in joined])
    np.fill_diagonal(differing, np.nan)
    return differing


def composition(groups: Sequence[ArrayLike], width: int, keep: Sequence[ArrayLike] | None = None) -> np.ndarray:
    """Return the number of queries of each group in each step (steps x width), only of those in `keep` if given.

    >>> composition([[0, 0, 1], [2, 1, 1]], 3).tolist(), composition([[0, 0, 1]], 2, keep=[[1, 0, 1]]).tolist()
    ([[2, 1, 0], [0, 2, 1]], [[1, 1]])
    """
    of_step = [np.asarray(row, int) for row in groups]
    if keep is not None:
        of_step = [row[np.asarray(kept, bool)] for row, kept in zip(of_step, keep, strict=True)]
    return np.array([np.bincount(row, minlength=width) for row in of_step])


def _check_indexing(indexing: str) -> str:
    if indexing not in INDEXING:
        raise unknown_name("indexing", indexing, INDEXING)
    return indexing
