"""Features of a finished network, for figures."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from driftline.benchmarks.base import Scenario
from driftline.training.model import as_model
from driftline.types import Network


def features(model: Network, scenario: Scenario) -> Iterator[pa.Table]:
    """Yield the features that the network computes for the scenario's embedding samples, one table per time."""
    for time, samples in scenario.embedding_samples.items():
        seen = as_model(model).features(samples.x)
        if seen is None:
            return
        n = len(samples)
        columns = {"time": pa.repeat(time, n), "id": pa.array(samples.id), "truth": pa.array(samples.y)}
        yield pa.table({**columns, "features": pa.array(list(seen))})
