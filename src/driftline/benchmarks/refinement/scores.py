"""Scores of a refinement run, computed from its record."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from driftline.metrics.confidence import percentile_interval
from driftline.metrics.refinement import Curve, scores
from driftline.types import JsonObject, Score

Correctness = JsonObject
"""What `metrics.refinement.scores` is computed from, by the names of its arguments."""


def variant_names(indexing: str, csr: str) -> dict[str, str]:
    """Return the registered names of the chosen variants of the six metrics.

    >>> variant_names("before", "inclusive")["ukr"], variant_names("after", "strict")["csr"]
    ('ukr-before', 'csr-strict')
    """
    retained = {name: f"{name}-before" if indexing == "before" else name for name in ("ukr", "okr")}
    counted = "csr-strict" if csr == "strict" else "csr"
    kg = "kg-before" if indexing == "before" else "kg"
    return {"efr": "efr", **retained, "csr": counted, "kg": kg, "oec": "oec"}


def correctness_by_step(answers: pd.DataFrame, probes: pd.DataFrame, steps: int, delay: int = 0) -> Correctness:
    """Return correctness by step 1..T or model 0..T; None where nothing was evaluated.

    Errors are evaluated again once their labels have been learned, `delay` steps later.
    """
    asked = [frame["correct"].to_numpy(float) for _, frame in answers.groupby("step")]
    past = _by_model(probes, "past", steps)
    return {
        "answered": asked,
        "fixed": [*fixed_errors(answers, probes, steps, delay)[: steps - delay], *[None] * delay],
        "upstream": [None if frame is None else _correct(frame) for frame in _by_model(probes, "upstream", steps)],
        "held_out": [None if frame is None else _correct(frame) for frame in _by_model(probes, "held out", steps)],
        "past": [None if frame is None else _correct(frame) for frame in past],
        "past_of": [None if frame is None else stream_positions(frame["id"], answers["id"]) for frame in past],
    }


def fixed_errors(answers: pd.DataFrame, probes: pd.DataFrame, steps: int, delay: int = 0) -> list[np.ndarray]:
    """Return the correctness of the errors of each episode when they are evaluated again.

    An error that was not evaluated again is still one: the constant answer of the trivial baseline has other errors
    than the run.
    """
    now = probes[probes["probe"] == "now"] if len(probes) else answers[:0]
    again = pd.Series(_correct(now), index=_occurrences(now["step"] - delay, now["id"]))
    wrong = answers["correct"].to_numpy(float) < 1
    fixed = again.reindex(_occurrences(answers["step"], answers["id"])[wrong], fill_value=0.0).to_numpy()
    step = answers["step"].to_numpy()[wrong]
    return [fixed[step == t] for t in range(steps)]


def _occurrences(steps: pd.Series, ids: pd.Series) -> pd.MultiIndex:
    """Return keys of queries: step, id, and how often this id came before in the step."""
    return pd.MultiIndex.from_arrays([steps, ids, ids.groupby([steps, ids]).cumcount()])


def stream_positions(ids: pd.Series, stream: pd.Series) -> np.ndarray:
    """Return the positions of these queries in the stream; repeated queries are matched in order.

    >>> stream_positions(pd.Series(["b", "a", "a"]), pd.Series(["a", "b", "a"])).tolist()
    [1, 0, 2]
    """
    at = pd.Series(np.arange(len(stream)), index=pd.MultiIndex.from_arrays([stream, stream.groupby(stream).cumcount()]))
    return at.loc[pd.MultiIndex.from_arrays([ids, ids.groupby(ids).cumcount()])].to_numpy()


def rows(
    correctness: Correctness, *, indexing: str, csr: str, resamples: int, rng: np.random.Generator
) -> Iterator[JsonObject]:
    """Yield every metric where it is defined, its mean over these steps and its final value."""
    values = scores(**correctness, indexing=indexing, csr=csr)
    drawn = scores(**correctness, indexing=indexing, csr=csr, resamples=resamples, rng=rng)
    counts, names = examples(correctness, indexing, csr), variant_names(indexing, csr)
    for (name, curve), (_, resampled) in zip(values, drawn, strict=True):
        yield from _rows(names[name], curve, resampled, counts[name])
        times = np.isfinite(curve.values).sum()
        if name == "oec":  # its mean is the mean of four means
            times = min(np.isfinite(getattr(values, part).values).sum() for part in ("ukr", "okr", "csr", "kg"))
        yield _summary(names[name], "mean", curve.mean, resampled.mean, int(times), "times")
        yield _summary(names[name], "final", curve.final, resampled.final, int(counts[name][-1]), "examples")


def examples(correctness: Correctness, indexing: str, csr: str) -> dict[str, np.ndarray]:
    """Return the number of examples behind each value; for OEC the minimum over its four parts."""
    size = {
        name: np.array([0 if row is None else len(np.asarray(row)) for row in rows])
        for name, rows in correctness.items()
    }
    models = slice(1, None) if indexing == "after" else slice(None, -1)
    asked = np.cumsum(size["answered"])
    counts = {
        "efr": size["fixed"],
        "ukr": size["upstream"][models],
        "okr": size["past"][models],
        "csr": np.append(0, asked[:-1]) if csr == "strict" else asked,
        "kg": size["held_out"][models],
    }
    return {**counts, "oec": np.min([counts[name] for name in ("ukr", "okr", "csr", "kg")], axis=0)}


def _by_model(probes: pd.DataFrame, name: str, steps: int) -> list[pd.DataFrame | None]:
    """Return the answers of f_0 .. f_T to one probe; after step index t the model is f_{t+1}."""
    by_step = dict(iter(probes[probes["probe"] == name].groupby("step"))) if len(probes) else {}
    return [by_step.get(k - 1) for k in range(steps + 1)]


def _correct(frame: pd.DataFrame) -> np.ndarray:
    return frame["correct"].to_numpy(float)


def _rows(metric: str, curve: Curve, drawn: Curve, counts: np.ndarray) -> Iterator[JsonObject]:
    low, high = percentile_interval(drawn.values)
    for t in np.flatnonzero(np.isfinite(curve.values)):
        row = {"value": curve.values[t], "low": low[t], "high": high[t], "n": counts[t], "unit": "examples"}
        yield {"metric": metric, "stat": "each", "time": str(t + 1), **row}


def _summary(metric: str, stat: str, value: Score, drawn: Score, n: int, unit: str) -> JsonObject:
    low, high = percentile_interval(drawn)
    return {"metric": metric, "stat": stat, "value": value, "low": low, "high": high, "n": n, "unit": unit}
