"""The scores of a test-time run: accuracy in windows of time and overall, each with its interval."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from driftline.metrics import test_time
from driftline.metrics.block_bootstrap import resample_blocks
from driftline.metrics.confidence import Interval, percentile_interval, wilson
from driftline.types import JsonObject

MIN_BATCHES = 10


def rows(answers: pd.DataFrame, resamples: int, rng: np.random.Generator) -> Iterator[JsonObject]:
    """Yield the scores of one run: windows with Wilson intervals, means with block-bootstrap intervals."""
    correct, batch = answers["correct"].to_numpy(float), answers["step"].to_numpy()
    parts = test_time.split_windows(correct)
    ends = np.cumsum([len(part) for part in parts])
    low, high = wilson([part.sum() for part in parts], [len(part) for part in parts])
    for end, part, below, above in zip(ends, parts, low, high, strict=True):
        row = {"value": part.mean(), "low": below, "high": above, "n": len(part), "unit": "examples"}
        yield {"metric": "stream-accuracy", "stat": "each", "time": str(end), **row}
    whole = _block_interval(correct, batch, resamples, rng)
    last = slice(-max(1, len(correct) // test_time.TENTHS), None)
    tail = _block_interval(correct[last], batch[last], resamples, rng)
    yield _mean("stream-accuracy", test_time.stream_accuracy(correct), whole, len(correct))
    yield _mean("batch-accuracy", test_time.batch_accuracy(correct, batch), whole, len(correct))
    yield _mean("last-tenth", test_time.final_tenth_accuracy(correct), tail, len(correct[last]))


def _block_interval(correct: np.ndarray, batch: np.ndarray, resamples: int, rng: np.random.Generator) -> Interval:
    """Return the block-bootstrap interval of a mean over time; with few batches, Wilson's."""
    inverse = np.unique(batch, return_inverse=True)[1]
    by_batch = np.bincount(inverse, correct) / np.bincount(inverse)
    if len(by_batch) < MIN_BATCHES:
        return wilson(correct.sum(), len(correct))
    return percentile_interval(resample_blocks(by_batch, resamples, rng))


def _mean(metric: str, value: float, interval: Interval, n: int) -> JsonObject:
    ends = {"low": float(interval[0]), "high": float(interval[1])}
    return {"metric": metric, "stat": "mean", "value": float(value), **ends, "n": n, "unit": "examples"}
