"""BN: batch normalization with the statistics of each test batch; nothing is trained.

Schneider et al., "Improving robustness against common corruptions by covariate shift adaptation", NeurIPS 2020, and
Nado et al. 2020, without a prior from training and without a memory of earlier batches, as in the RDumb study.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.errors import UserError
from driftline.learners.test_time.base import NormAdapter
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Network, Samples


@register("method", "bn")
@dataclass
class BN(NormAdapter):
    """BN: batch normalization with the statistics of the test batch."""

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if self._min_inputs == 1:
            raise UserError("bn replaces the statistics of batch norm, and this network has none: it would be frozen")
