"""Count the multiply-accumulates (MACs) of a run, without those of its evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.loop import Probes
from driftline.training.model import as_model
from driftline.types import Network, Probe, Step

if TYPE_CHECKING:
    from driftline.engine.stages.base import Profiler
    from driftline.training.mac_counter import MacCounter


def metered(model: Network, profiler: Profiler | None) -> MacCounter | None:
    """Attach a meter to a network and return it, known to a profiler; an estimator has no passes to count."""
    if not as_model(model).is_network:
        return None
    from driftline.training.mac_counter import MacCounter

    meter = MacCounter()
    meter.attach(model)
    if profiler is not None:
        profiler.add_counter(meter)
    return meter


def counts(meter: MacCounter | None) -> tuple[int | None, int | None]:
    """Return the MACs so far, forward and backward."""
    return (meter.forward, meter.backward) if meter else (None, None)


@dataclass(frozen=True)
class UncountedProbes:
    """Probes whose passes are not counted as the learner's."""

    probes: Probes
    meter: MacCounter

    def due(self, step: Step | None) -> Iterator[Probe]:
        """Yield the probes that are due; the learner answers one while the next is waited for."""
        return uncounted(self.probes.due(step), self.meter)


def uncounted(probes: Iterable[Probe], meter: MacCounter) -> Iterator[Probe]:
    """Yield probes, and count the passes made between two of them as evaluation."""
    for probe in probes:
        meter.probing = True
        yield probe
        meter.probing = False
