"""Figure `svcca`: similarity of each layer's activations to the oracle's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from driftline.metrics.model_similarity import leading_directions, svcca
from driftline.report.figures.axes import Chart
from driftline.report.figures.base import Row, figure
from driftline.report.figures.reloaded import ALL_LAYERS, NetworkFigure, paths_by_layer, reload_oracle, shared_setting
from driftline.types import Network

if TYPE_CHECKING:
    from driftline.engine.reload import ReloadedRun, Snapshot

SHARES = (0.5, 0.9)  # of the variance kept


@figure("svcca", benchmarks=("seq-to-final",))
@dataclass(frozen=True)
class Svcca(NetworkFigure):
    """SVCCA of each layer's activations with the oracle's on the final test set, keeping 50% and 90% of the variance.

    "all layers" is the mean over layers, as in the reference code.
    """

    def network_rows(self, visit: ReloadedRun) -> Iterable[Row]:
        for snapshot in visit.snapshots:
            key = shared_setting(visit) + snapshot.key
            for layer, (half, most) in self.cached(key, partial(self._compare, visit, snapshot)).items():
                yield {"step": snapshot.step, "layer": layer, "half": half, "most": most, "n": len(visit.test)}

    def _compare(self, visit: ReloadedRun, snapshot: Snapshot) -> dict[str, tuple[float, ...]]:
        oracle = self.cached(shared_setting(visit), lambda: _bases(visit, reload_oracle(visit).final))
        bases = _bases(visit, snapshot.network)
        # The directions are orthonormal, so comparing all of them is comparing the activations.
        each = {key: svcca(bases[key], oracle[key], 1.0) for key in bases}
        layers = {layer: tuple(each[layer, share] for share in SHARES) for layer in snapshot.network.layers}
        return {**layers, ALL_LAYERS: tuple(np.mean(list(layers.values()), axis=0).tolist())}

    def chart(self, frame: pd.DataFrame) -> Chart:
        half, most = (f"SVCCA with the oracle, share {share:g}" for share in SHARES)
        return paths_by_layer(frame, ("half", half), ("most", most), oracle=1.0)


def _bases(visit: ReloadedRun, network: Network) -> dict[tuple[str, float], np.ndarray]:
    from driftline.training.interpolation import activations

    found = activations(network, visit.test.x)
    return {(layer, share): leading_directions(values, share) for layer, values in found.items() for share in SHARES}
