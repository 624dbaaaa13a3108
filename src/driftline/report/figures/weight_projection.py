"""Figure `weight-projection`: weights of each model relative to the oracle, along two directions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from driftline.metrics.model_similarity import project_weights
from driftline.report.figures.axes import Chart
from driftline.report.figures.base import Row, figure
from driftline.report.figures.reloaded import (
    ALL_LAYERS,
    LeftOut,
    NetworkFigure,
    paths_by_layer,
    reload_oracle,
    shared_setting,
)
from driftline.types import Network

if TYPE_CHECKING:
    from driftline.engine.reload import ReloadedRun


@figure("weight-projection", benchmarks=("seq-to-final",))
@dataclass(frozen=True)
class WeightProjection(NetworkFigure):
    """Weights of each model relative to the oracle: along d_H to ERM on history, and along d_T to the baseline.

    For each layer and for all together; batch norm is left out. (The reference also leaves out the shortcuts of
    residual networks.) Networks with side modules have no weights to compare.
    """

    def network_rows(self, visit: ReloadedRun) -> Iterable[Row]:
        from driftline.training.interpolation import layer_weights

        references = self.cached(shared_setting(visit), lambda: [layer_weights(m) for m in _references(visit)])
        weights = [(snapshot.step, layer_weights(snapshot.network)) for snapshot in visit.snapshots]
        if any(flat is None for _, flat in weights):
            raise LeftOut("side modules, which have no counterpart among the oracle's weights")
        for step, flat in weights:
            found = project_weights(flat, *references)  # type: ignore[arg-type]
            for layer, point in {**found.layers, ALL_LAYERS: found.whole}.items():
                yield {"step": step, "layer": layer, "historical": point.historical, "final": point.final}

    def chart(self, frame: pd.DataFrame) -> Chart:
        x, y = ("historical", "along d_H: ERM on history"), ("final", "along d_T: few final samples")
        return paths_by_layer(frame, x, y, oracle=0.0)


def _references(visit: ReloadedRun) -> list[Network]:
    """Return the networks at the origin and at the ends of the two directions: oracle, ERM on history, baseline."""
    if visit.learner.n_steps_fitted < 2:
        raise LeftOut("this sequence has no history")
    oracle = reload_oracle(visit).final
    return [oracle, visit.with_method("seq-ft").snapshots[-2].network, visit.with_method("baseline").final]
