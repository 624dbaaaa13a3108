"""Features of a finished network, for figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from driftline.benchmarks.base import Layout


def features(model: Any, scenario: Layout) -> Iterator[pa.Table]:
    """Yield the features that the network computes for the scenario's embedding samples, one table per time."""
    import torch

    from driftline.models.inputs import as_input, as_tensor
    from driftline.training.features import linear_layers, with_features
    from driftline.training.fit import evaluating

    if not linear_layers(model):
        return
    with evaluating(model), torch.no_grad():
        for time, samples in scenario.pictured.items():
            _, seen = with_features(model, as_input(as_tensor(samples.x, model)))
            n = len(samples)
            columns = {"time": pa.repeat(time, n), "id": pa.array(samples.id), "truth": pa.array(samples.y)}
            yield pa.table({**columns, "features": pa.array(list(seen.numpy()))})
