"""What is known about aging: the verdict, and the sizes that its sentences need."""

from __future__ import annotations

from dataclasses import dataclass

from driftline.auditing.estimate import Estimate
from driftline.auditing.metric import Metric
from driftline.auditing.sizes import Sizes
from driftline.auditing.verdict import LEVEL, Verdict

RELATION_Z = 3.0  # z of the period's help above which the relation changed


@dataclass(frozen=True)
class Aging:
    """Verdict and sizes of the deciding metric, with the names that sentences use."""

    verdict: Verdict
    sizes: Sizes
    periods: tuple[str, ...]
    """Periods of the matrix."""
    pieces: int
    """Number of them in a period of the page."""
    unit: str
    """Unit of a period of the page."""
    training_rows: int
    cause_z: float | None
    """How much the period helps to predict at equal inputs; None if models did not age."""
    inputs_moved: bool
    loss_since: tuple[Estimate, ...]
    """By cut, what models of before lose after it."""
    loss_per_period: Estimate
    base_rates: tuple[float, float] | None = None
    """Fitted share of the class that moved most, at the begin and the end."""
    base_rate_class: str | None = None
    has_probabilities: bool = True

    is_number: bool = False
    slope: Estimate | None = None
    """Slope of the deployed model's logits in the last period in which its probabilities are off."""

    @property
    def metric(self) -> Metric:
        return self.sizes.metric

    @property
    def only_inputs_changed(self) -> bool:
        """Whether models age because inputs moved, with no change of the relation found at equal inputs."""
        return self.inputs_moved and self.cause_z is not None and self.cause_z <= RELATION_Z

    @property
    def is_uncertain(self) -> bool:
        """Whether there are signs of aging, but not all that a finding needs."""
        verdict, order = self.verdict, self.verdict.recalibrated.order
        if not verdict.has_skill or verdict.aged or verdict.miscalibrated or verdict.unordered or order is None:
            return False
        return order.p <= LEVEL or self.is_behind

    @property
    def is_behind(self) -> bool:
        """Whether older models are surely behind new ones, by an amount that shows."""
        lost = self.sizes.staleness
        return lost.low > 0 and self.metric.difference(lost.value) != self.metric.difference(0.0)

    def age(self, periods: float) -> str:
        """Return a number of matrix periods in the page's unit."""
        value = periods / self.pieces
        return f"{value:.3g} {self.unit.removesuffix('s') if value == 1 else self.unit}"
