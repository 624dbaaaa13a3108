"""Counts of correct answers and of queries per step or model, weighted by bootstrap draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError
from driftline.metrics.per_period import check_positive

Rows = Sequence[ArrayLike | None]
"""For each step or model, a score from 0 to 1 for every example; None where it was not evaluated."""
Listed = list[np.ndarray]
Weigh = Callable[..., np.ndarray]
Counts = tuple[np.ndarray, np.ndarray]


def fraction_correct(right: ArrayLike, asked: ArrayLike) -> np.ndarray:
    """Return the share of right answers; NaN where nothing was asked."""
    part, whole = np.asarray(right, float), np.asarray(asked, float)
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def to_scores(what: str, row: ArrayLike | None) -> np.ndarray:
    """Return a row as numbers from 0 to 1, empty if it was not evaluated."""
    score = np.zeros(0) if row is None else np.asarray(row, float)
    if score.ndim != 1 or not ((score >= 0) & (score <= 1)).all():
        raise UserError(f"each row of '{what}' lists a number from 0 (wrong) to 1 (right) for every example")
    return score


def check_episodes(answered: Rows) -> Listed:
    """Return the answers to each episode; refuse if there are none."""
    rows = [to_scores("answered", row) for row in answered]
    if not rows or not all(len(row) for row in rows):
        raise UserError("refinement is scored from the answers to at least one episode, none of them empty")
    return rows


def check_length(length: int, **given: Rows) -> None:
    """Refuse lists that do not have a row for every step or model."""
    for what, rows in given.items():
        if len(rows) != length:
            raise UserError(f"these episodes need {length} rows of '{what}', not {len(rows)}")


def bootstrap_weights(resamples: int | None, rng: np.random.Generator | None) -> Weigh:
    """Return a function that draws how often each example of some sets counts; once without resamples."""
    if resamples is None:
        return lambda *sizes: np.ones(sum(sizes))
    check_positive("resamples", resamples)
    if rng is None:
        raise UserError("bootstrap draws need a random generator: give rng")

    def weigh(*sizes: int) -> np.ndarray:
        parts = [rng.multinomial(n, np.full(n, 1 / n), size=resamples) for n in sizes if n]
        return np.concatenate(parts, axis=1).astype(float) if parts else np.zeros((resamples, 0))

    return weigh


def count_correct(rows: Listed, about: Listed, weights: np.ndarray) -> Counts:
    """Return right answers and questions [..., rows], each example counted as often as it was drawn."""
    right = [weights[..., which] @ row.astype(float) for row, which in zip(rows, about, strict=True)]
    return np.stack(right, axis=-1), np.stack([weights[..., which].sum(axis=-1) for which in about], axis=-1)


def error_scores(asked: Listed, fixed: Rows, places: Listed) -> tuple[Listed, Listed]:
    """Return the scores of errors after the step, and their positions in the stream; empty if not evaluated."""
    rows, about = [to_scores("fixed", row) for row in fixed], []
    for t, (row, answers, place) in enumerate(zip(rows, asked, places, strict=True)):
        wrong = place[answers < 1]
        if fixed[t] is not None and len(row) != len(wrong):
            raise UserError(f"step {t} has {len(wrong)} errors, and 'fixed' has {len(row)} answers for it")
        about.append(wrong[: len(row)])
    return rows, about


def fixed_set_counts(what: str, rows: Rows, weigh: Weigh) -> Counts:
    """Return counts for a fixed set, the same for every model evaluated on it."""
    given = [to_scores(what, row) for row in rows]
    sizes = {len(row) for row in given} - {0}
    if len(sizes) > 1:
        raise UserError(f"all models answer the same examples of '{what}', but there are rows of {sorted(sizes)}")
    return count_correct(given, [np.arange(len(row)) for row in given], weigh(*sizes))


def past_query_counts(rows: Rows, of: Rows | None, drawn: np.ndarray, weigh: Weigh) -> Counts:
    """Return counts for past queries of the stream, resampled with the stream if `of` names them."""
    given = [to_scores("past", row) for row in rows]
    sizes = [len(row) for row in given]
    if of is None:
        return count_correct(given, np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]), weigh(*sizes))
    about = [np.zeros(0, int) if row is None else np.asarray(row, int) for row in of]
    if [len(row) for row in about] != sizes or any(((k < 0) | (k >= drawn.shape[-1])).any() for k in about):
        raise UserError("'past_of' must give, for every entry of 'past', the place of its query in the stream, from 0")
    return count_correct(given, about, drawn)
